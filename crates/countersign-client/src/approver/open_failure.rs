//! Why a request does not open.

use std::fmt;

use crate::visible::visible;
use countersign_e2e as e2e;

/// Why a request cannot be approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenFailure {
    /// This device never authenticated an enforcer of this id, and no other device has introduced
    /// one.
    NotPaired,
    /// The pairing was ended here.
    EndedHere,
    /// Devices of this approver have introduced it with different keys.
    Disagreement,
    /// The request does not open with the key that is known here, and another device has introduced
    /// another key.
    OtherKey,
    /// The gateway could have written or changed it.
    NotEncrypted,
    /// It does not open, or contradicts the members beside it.
    NotAuthentic(e2e::Error),
    Malformed(String),
}

impl fmt::Display for OpenFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPaired => f.write_str(
                "this device is not paired with that machine; pair it: countersign pair LINK",
            ),
            Self::EndedHere => f.write_str(
                "this device ended the pairing with that machine; pair again: countersign pair LINK",
            ),
            Self::Disagreement => f.write_str(
                "your devices know different keys of that machine, so someone may be interfering; pair this device with it: \
                 countersign pair LINK",
            ),
            Self::OtherKey => f.write_str(
                "that machine's key has changed, as another of your devices knows; if the machine was set up again, pair this \
                 device with it: countersign pair LINK. If not, someone may be interfering",
            ),
            Self::NotEncrypted => {
                f.write_str("it is not encrypted, so the gateway could have written or changed it")
            }
            Self::NotAuthentic(error) => f.write_str(&visible(&error.to_string())),
            Self::Malformed(problem) => write!(f, "it is malformed: {}", visible(problem)),
        }
    }
}
