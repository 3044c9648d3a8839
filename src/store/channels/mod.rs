//! Channels, the messages that are pushed over them, and the presence of enforcers.

pub mod ack;
pub mod approver_messages;
pub mod channel;
pub mod claim;
pub mod enforcer_messages;
pub mod lifecycle;
pub mod presence;
pub mod unacked;
