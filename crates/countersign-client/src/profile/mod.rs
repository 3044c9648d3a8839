//! A profile: the credential, the keys and the pairings of a terminal client. It may have both
//! roles, so that one person can try both ends on one machine.
//!
//! A profile holds only text that this program wrote itself. Its types turn that into keys and
//! trust.

mod approver;
mod enforcer;
mod file;
mod gateway;
mod learned;
mod records;
mod sealed;
mod secret;
mod teams;

pub use self::approver::{ApproverProfile, EnforcerRecord, TeamPairingRecord, UnpairedRecord};
pub use self::enforcer::{ApproverRecord, EnforcerProfile};
pub use self::file::{Profile, ProfileFile};
pub(crate) use self::file::{REQUESTS, SETS, USED};
pub use self::gateway::GatewayProfile;
pub(crate) use self::learned::ENFORCER;
pub use self::sealed::{SealedKeys, read_passphrase};
pub use self::secret::SecretText;
pub(crate) use self::teams::{TeamFile, TeamRole};
pub use self::teams::{TeamInvitationRecord, TeamRecord, WithheldHead, known_teams};
pub use crate::error::ProfileError;
