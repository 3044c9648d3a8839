//! The enforcer: it sends requests, and accepts only decisions that a pinned device signed.

mod approval_request;
mod approval_set;
mod approved;
mod ask;
mod devices;
mod durable;
mod grants;
mod open_sets;
mod orders;
mod pairing;
mod parked_set;
mod pending_request;
mod prompts;
mod receipt;
mod receipt_folder;
mod role;
mod rule_demand;
pub(crate) mod sessions;
mod set_count;
mod set_part;
mod set_preparation;
mod set_seats;
mod stored_request;
mod teams;
mod use_journal;
mod withdrawal;

pub use self::approval_request::{AcceptedApproval, ApprovalDenial, ApprovalRequest};
pub use self::approval_set::{AcceptedSet, PendingSet};
pub use self::approved::{ApprovedCommand, approved_commands};
pub use self::devices::NamedDevice;
pub use self::grants::{GrantSubject, KeptGrant, UsedGrant};
pub use self::open_sets::OpenSet;
pub use self::orders::AgentPause;
pub use self::pairing::{PairingAttempt, PairingCompletion, PairingToken};
pub use self::pending_request::PendingRequest;
pub use self::prompts::TakenPrompt;
pub use self::receipt_folder::ReceiptFolder;
pub use self::role::Enforcer;
pub use self::rule_demand::{EscalationDemand, MAX_PARK_SECONDS, RuleDemand};
pub use self::teams::team_name;
pub use countersign_e2e::CommentDuty;

pub(crate) use self::approval_request::MAX_TIMEOUT;
pub(crate) use self::pending_request::DecisionMessage;
pub(crate) use self::stored_request::StoredRequest;
