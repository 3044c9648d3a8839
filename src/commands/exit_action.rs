//! The end of a command. The exit statuses are those of `sysexits.h`, so that scripts can tell
//! causes apart.

use std::process::{Command, ExitCode};

use countersign::client::{ClientError, profile::ProfileError};
use countersign::e2e;

/// Not permitted: rejected, not trusted, or refused by the gateway.
pub const DENIED: u8 = 77;
/// There was no decision in time.
pub const NO_DECISION: u8 = 75;
/// The gateway cannot be reached.
pub const UNAVAILABLE: u8 = 69;
/// The profile is missing or unusable.
pub const PROFILE: u8 = 78;
/// The input of the command makes no sense.
pub const MALFORMED: u8 = 65;
/// The command does not fit what it is about.
pub const USAGE: u8 = 64;
pub const FAILURE: u8 = 1;

#[derive(Debug)]
pub enum ExitAction {
    Code(ExitCode),
    /// This process becomes another program.
    Become(Box<Command>),
}

impl ExitAction {
    pub const DONE: Self = Self::Code(ExitCode::SUCCESS);

    pub fn code(code: u8) -> Self {
        Self::Code(ExitCode::from(code))
    }
}

/// The exit status for an error of the client library, wherever in the chain it is.
pub fn code_of(error: &anyhow::Error) -> u8 {
    let client = error.chain().find_map(|cause| cause.downcast_ref());
    match client {
        Some(
            ClientError::Profile(_) | ClientError::Grants { .. } | ClientError::Prompts { .. },
        ) => PROFILE,
        Some(error) if error.is_unavailable() => UNAVAILABLE,
        Some(
            ClientError::Crypto(_)
            | ClientError::Refused(_)
            | ClientError::Unpaired { .. }
            | ClientError::NoSuchInvitation
            | ClientError::NoSuchCode
            | ClientError::KnownWithOtherKey(_)
            | ClientError::NotApprovable(_)
            | ClientError::AlreadyDecided
            | ClientError::GoneAfterSigning
            | ClientError::RefusedAfterSigning
            | ClientError::ExpiredAfterSigning
            | ClientError::NoLongerPending
            | ClientError::DeviceNotInForce
            | ClientError::DeviceRevoked
            | ClientError::NoDeviceInForce,
        ) => DENIED,
        Some(ClientError::Record(_)) => MALFORMED,
        Some(
            ClientError::Choice(_)
            | ClientError::Ambiguous(_)
            | ClientError::Invitation
            | ClientError::RolesTaken,
        ) => USAGE,
        None if error.is::<e2e::Error>() => DENIED,
        None if error.is::<ProfileError>() => PROFILE,
        Some(_) | None => FAILURE,
    }
}
