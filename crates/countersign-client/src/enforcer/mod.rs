//! The enforcer: it sends requests, and accepts only decisions that a pinned device signed.

mod approval_request;
mod approved;
mod ask;
mod devices;
mod grants;
mod orders;
mod pairing;
mod prompts;
mod role;
pub(crate) mod sessions;

pub use self::approval_request::{AcceptedApproval, ApprovalDenial, ApprovalRequest};
pub use self::approved::{ApprovedCommand, approved_commands};
pub use self::ask::PendingRequest;
pub use self::devices::NamedDevice;
pub use self::grants::{GrantSubject, KeptGrant, UsedGrant};
pub use self::orders::AgentPause;
pub use self::pairing::{PairingAttempt, PairingCompletion, PairingToken};
pub use self::prompts::TakenPrompt;
pub use self::role::Enforcer;
