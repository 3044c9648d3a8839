//! The approver's page in a real browser, with real nodes, and the commands of enforcers at the
//! other end.

mod agents;
mod chromium;
mod deciding;
mod devices;
mod firefox;
mod first_minutes;
mod forger;
mod hostile;
mod keeping;
mod languages;
mod live;
mod marionette;
mod notified;
mod page;
mod pairing;
mod people;
mod questions;
mod readable;
mod several;
mod sign_in;
mod stage;
mod unreadable;
mod views;
mod webdriver;

use std::time::Duration;

/// Machines that run everything at once are slow.
const PATIENCE: Duration = Duration::from_secs(60);
