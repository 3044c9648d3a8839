//! The approver at a terminal: it joins, pairs, reads requests, and signs decisions. Claims of the
//! gateway are shown as such, or not believed.

mod changed_files;
mod decide;
mod devices;
mod given;
mod headline;
mod headline_text;
mod inbox;
mod introductions;
mod invite;
mod join;
mod notifications;
mod open_failure;
mod own_seats;
mod pairing;
mod prompt;
mod requested_action;
mod role;
mod stand_ins;
mod team_adoption;
mod teams;
mod tool_headline;

pub use self::decide::{AcceptedDecision, ApproverChoice, DeliveryConfirmation};
pub use self::devices::{DeviceStanding, KnownDevices, ListedDevice};
pub use self::given::{GivenGrant, GrantUse};
pub use self::headline::{agent_reason, headline};
pub use self::inbox::{InboxRequest, StrangeDevice};
pub use self::introductions::Introducer;
pub use self::invite::DeviceOffer;
pub use self::join::{EnrolmentProgress, InvitationLink, JoinOutcome, join};
pub use self::notifications::{
    AddedWebhook, ListedNotification, NotificationList, TestedNotification,
};
pub use self::open_failure::OpenFailure;
pub use self::own_seats::SeatNotice;
pub use self::pairing::{KnownKey, PairingChoice, PendingComparison};
pub use self::prompt::{SentOrder, SentPrompt};
pub use self::requested_action::{RequestedAction, requested_actions};
pub use self::role::Approver;
pub use self::teams::TeamAnswer;
