//! The clients at both ends of the gateway: the enforcer beside an agent, and the approver in a
//! terminal. The commands, the tests and the benchmark use this library. It shares only `protocol`
//! and `e2e` with the gateway, which may be hostile.
//!
//! An enforcer opens its profile, sends a request, waits for the decision, and acts on it:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use countersign_client::enforcer::{ApprovalDenial, ApprovalRequest, Enforcer};
//! # use countersign_client::profile::ProfileFile;
//! # use countersign_protocol::clock::Clock;
//! # async fn deploy() -> Result<(), ApprovalDenial> {
//! let profile = ProfileFile::named("default").map_err(countersign_client::ClientError::from)?;
//! let mut enforcer = Enforcer::open(&profile, &Clock::system())?;
//! let payload = serde_json::json!({ "program": "/usr/bin/make", "argv": ["make", "deploy"] });
//! let request = ApprovalRequest {
//!     artifact_type: "command.review".to_owned(),
//!     repository: "shop".to_owned(),
//!     payload: payload.as_object().cloned().unwrap_or_default(),
//!     members: serde_json::Map::new(),
//!     approver: None,
//!     timeout: Duration::from_secs(300),
//!     submit_timeout: Duration::from_secs(10),
//! };
//! let mut pending = enforcer.prepare(request).await?;
//! let accepted = pending.decision(|| eprintln!("waiting for a decision")).await?;
//! println!("{} approved it", accepted.approval.approver);
//! std::process::Command::new("make").arg("deploy").status().ok();
//! # Ok(())
//! # }
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `gateway`, `address`, `channel`, `tls`, `retry`, `unreachable` | calls and WebSockets to any node of a list |
//! | `access` | calls and Envelopes of a role |
//! | `wire` | messages of the gateway |
//! | `profile`, `private_file` | files that are kept between runs |
//! | `enforcer` | requests, and the checks before an answer counts |
//! | `approval` | the same for agents written in Rust: ask, run if approved, submit now and resume later |
//! | `approver` | joining, pairing, reading, deciding, devices |
//! | `log` | the gateway's log of decisions and outcomes, checked against what was seen before |
//! | `record` | a decision that can be verified offline |
//! | `visible` | text from elsewhere, fit for a terminal |

mod access;
mod address;
pub mod approval;
pub mod approver;
mod channel;
pub mod enforcer;
mod error;
mod gateway;
pub mod log;
mod private_file;
pub mod profile;
mod random;
mod record;
mod retry;
pub mod shell;
mod team_reading;
mod tls;
mod unreachable;
mod visible;
mod wire;

pub use self::address::parse_url;
pub use self::channel::{ChannelRole, ChannelWatch, PushedEvent};
pub use self::error::{ClientError, GatewayRefusal};
pub use self::gateway::{GatewayAnswer, GatewayCall, GatewayClient, GatewayLocation};
pub use self::random::random;
pub use self::record::{DecisionRecord, MAX_RECORD_BYTES, VerifiedRecord};
pub use self::visible::{has_invisible, visible, visible_lines};
