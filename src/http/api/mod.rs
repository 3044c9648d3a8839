//! The handlers, by subject, and the layers around them. They hold no rule about exchanges.
//! A handler authenticates the caller, reads the request within its limits, and calls one use case.
//! Every refusal has the framing of its route: an Envelope, or plain JSON.

pub(super) mod audit;
mod auth;
mod body;
pub(super) mod certificate;
mod channel;
pub(super) mod compat;
pub(super) mod device;
pub(super) mod device_invitation;
pub mod error;
pub(super) mod exchange;
mod frame;
pub(super) mod generic;
pub(super) mod health;
pub(super) mod inbox;
pub(super) mod introduction;
pub(super) mod invitation;
mod limit;
pub(super) mod log;
pub(super) mod notification;
pub(super) mod openapi;
pub(super) mod origin;
pub(super) mod page;
pub(super) mod page_settings;
pub(super) mod pairing;
mod parsing;
mod path;
pub mod platform;
pub(super) mod presence;
pub(super) mod prompt;
pub mod reply;
pub(super) mod request_log;
mod request_scope;
pub(super) mod session;
pub(super) mod sse;
pub(super) mod status;
pub(super) mod team;
pub(super) mod token;
pub(super) mod whoami;
pub(super) mod ws;
