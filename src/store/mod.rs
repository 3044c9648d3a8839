//! All SQL, and nothing else. A function runs one guarded statement, which writes if and only if the stored state allows, and
//! reports facts; judging them is up to `protocol`.
//!
//! Rules for statements, where `tests` hold the plans of the frequent ones:
//!
//! - Statements on the path of exchanges wait for no lock on a row: they use `skip locked`, and report what they could not lock
//!   as busy (`busy`). The others take locks in one order, or they would deadlock: idempotency keys, exchanges, inbox items,
//!   messages, each sorted by key.
//! - A row found by its primary key must be found by nothing else. Conditions beside the key are written so that no partial
//!   index matches them (`closed_as` for `closed_at`, `coalesce(acked_at, 'infinity') = 'infinity'`), nor another key
//!   (`(approver_id = …) is true`): the planner may believe such an index to be almost empty, and scan all of it.
//! - Rows found by age are compared with a clock that is read once, in a subquery: an index scan needs a constant bound.
//! - Rows found by age are passed on as arrays, which the planner takes to be short. Of a limit that it does not know it
//!   expects a tenth of the table, and would scan the other tables to join that many rows.

pub mod audit;
pub mod channels;
pub mod database;
pub mod devices;
pub mod error;
pub mod exchanges;
pub mod identity;
pub mod log;
pub mod notifications;
pub mod pairing;
pub mod prompts;
pub mod retention;
pub mod session;
pub mod teams;

use std::sync::Arc;

use tokio_util::task::TaskTracker;

pub use self::audit::read::AuditStore;
pub use self::channels::channel::ChannelStore;
pub use self::database::interval::seconds;
use self::database::pools::Database;
use self::error::Result;
pub use self::exchanges::exchange::ExchangeStore;
pub use self::identity::credentials::CredentialStore;
pub use self::log::LogStore;
pub use self::notifications::target::NotificationStore;
pub use self::pairing::pairings::PairingStore;
pub use self::prompts::status::PromptStore;
pub use self::session::SessionStore;
pub use self::teams::TeamStore;
use crate::clock::Clock;
use crate::config::Config;
use crate::protocol::id::NodeId;
use crate::telemetry::Metrics;

/// The statements by subject.
pub struct Store {
    pub database: Arc<Database>,
    pub exchanges: Arc<ExchangeStore>,
    pub channels: Arc<ChannelStore>,
    pub credentials: Arc<CredentialStore>,
    pub pairings: Arc<PairingStore>,
    pub prompts: Arc<PromptStore>,
    pub sessions: Arc<SessionStore>,
    pub audit: AuditStore,
    pub log: LogStore,
    pub notifications: NotificationStore,
    pub teams: TeamStore,
}

impl Store {
    /// Opens the store; connections are made when they are first needed.
    pub fn open(
        config: &Config,
        node: &NodeId,
        clock: &Clock,
        metrics: &Arc<Metrics>,
        tasks: &TaskTracker,
    ) -> Result<Self> {
        let database = Arc::new(Database::open(&config.database, node, clock, metrics)?);
        Ok(Self {
            exchanges: Arc::new(ExchangeStore::new(&database, config, tasks)),
            channels: Arc::new(ChannelStore::new(&database, &config.push, tasks)),
            credentials: Arc::new(CredentialStore::new(&database, &config.auth, tasks)),
            pairings: Arc::new(PairingStore::new(&database, &config.limits, tasks)),
            prompts: Arc::new(PromptStore::new(&database, config, tasks)),
            sessions: Arc::new(SessionStore {
                database: Arc::clone(&database),
            }),
            audit: AuditStore {
                database: Arc::clone(&database),
            },
            log: LogStore {
                database: Arc::clone(&database),
            },
            notifications: NotificationStore {
                database: Arc::clone(&database),
            },
            teams: TeamStore {
                database: Arc::clone(&database),
            },
            database,
        })
    }
}
