//! Channels, the messages that are pushed over them, and the presence of enforcers.

pub mod ack;
pub mod approver_messages;
pub mod channel;
pub mod claim;
pub mod close_statement;
pub mod enforcer_messages;
pub mod hello_statement;
pub mod lifecycle;
pub mod open_statement;
pub mod presence;
pub mod read_decision;
pub mod terms;
pub mod unacked;
pub mod write_offers;
