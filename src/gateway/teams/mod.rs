//! Teams: the gateway stores their states in order, serves them, and pairs their enforcers with their people. Clients judge each
//! state themselves, so the gateway can put nobody into a team.

mod joining;
mod refusal;
mod service;

pub use self::joining::TeamInvitation;
pub use self::service::{StateCommand, StateListing, TeamService};
