//! Configuration: defaults, then a file, then the environment, then flags. Unknown keys are errors,
//! secrets are redacted.

use std::net::SocketAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::protocol::decision::{CompactRule, Verify};

#[macro_use]
mod section;

mod auth;
mod environment;
mod error;
mod limits;
mod load;
mod notifications;
mod oidc;
mod page;
mod require;
mod secret;
mod telemetry;
mod tls;

pub use self::auth::Auth;
pub use self::error::ConfigError;
pub use self::limits::{Limits, Rates};
pub use self::notifications::{MAX_RETRY_SECONDS, Notifications};
pub use self::oidc::Oidc;
pub use self::page::Page;
pub use self::secret::Secret;
pub use self::telemetry::Telemetry;
pub use self::tls::{ClientAuth, Tls, TlsMode};

/// Most connections from one address where clients connect themselves, unless configured.
pub const DIRECT_CONNECTIONS_PER_ADDRESS: usize = 256;

section! {
    /// `[server]`: how the node serves.
    Server {
        /// Where to listen. Without `[tls]`, plain HTTP is served on loopback only.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// `sender.gatewayId` of every envelope; the same on every node.
        gateway_id: String = "countersign".into(),
        header_timeout_seconds: u64 = 10,
        /// How long a connection may be idle, before its first request and between requests. Longer
        /// than clients keep idle connections, so that the client closes first.
        idle_timeout_seconds: u64 = 100,
        body_timeout_seconds: u64 = 30,
        /// Bytes a second that a client must send of a body and read of an answer, beside pauses of
        /// 10 s and `write_timeout_seconds`; 0 for any number.
        min_bytes_per_second: u64 = 8 << 10,
        max_connections: usize = 25_000,
        /// Most connections at once from one address, or one /64 of IPv6; 0 for 256 where the node
        /// terminates TLS, and no limit elsewhere, where every connection is a proxy's.
        max_connections_per_address: usize = 0,
        /// Origins whose pages may call the API and open channels.
        origins: Vec<String> = Vec::new(),
        /// How long a stopping node still accepts connections, until load balancers notice.
        lame_duck_ms: u64 = 2_000,
        /// How long a stopping node may take to finish its work.
        drain_seconds: u64 = 20,
    }
    constants {
        /// How long a client may read nothing of what is written to it.
        write_timeout_seconds: u64 = 30,
        /// How long a client may take to read one answer whole.
        answer_timeout_seconds: u64 = 300,
    }
}

section! {
    /// `[node]`: this process.
    Node {
        /// Its name in the history; generated if empty.
        id: String = String::new(),
    }
}

section! {
    /// `[database]`: PostgreSQL.
    Database {
        url: Secret = Secret::default(),
        url_file: Option<PathBuf> = None,
        /// The same database without a pooler in between, for LISTEN; `url` if empty.
        listen_url: Secret = Secret::default(),
        listen_url_file: Option<PathBuf> = None,
        pool_size: usize = 16,
        statement_timeout_ms: u64 = 5_000,
        statement_cache: usize = 100,
        /// Whether to set the timeouts on connect; false behind `PgBouncer`, where `alter role …
        /// set` does it.
        session_settings: bool = true,
        /// Whether to set the tenants of each call for row-level security; for a role that does not
        /// own the tables.
        row_security: bool = false,
    }
    constants {
        /// Most connections for health, sweeps and administration.
        background_pool_size: usize = 4,
        /// How long a request waits for a connection before 503.
        acquire_timeout_ms: u64 = 2_000,
        lock_timeout_ms: u64 = 2_000,
        /// How long a connection is used, give or take a fifth.
        connection_max_age_seconds: u64 = 1_800,
    }
}

impl Database {
    pub fn direct_url(&self) -> &str {
        if self.listen_url.is_empty() {
            self.url.expose()
        } else {
            self.listen_url.expose()
        }
    }
}

section! {
    /// `[protocol]`: names.
    Protocol {
        /// The protocol's short name: media type, error prefix and extension keys follow from it.
        name: String = "proto".into(),
    }
}

section! {
    /// `[artifacts]`: what is accepted for review.
    Artifacts {
        /// Whether plaintext artifacts are accepted; false for gateways that must never see any.
        open: bool = true,
        max_lifetime_seconds: u64 = 30 * 24 * 3_600,
    }
}

section! {
    /// `[decisions]`: how decisions are verified.
    Decisions {
        /// Whether signatures must verify: `registered`, `required` or `off`.
        verify: Verify = Verify::Registered,
        /// Whether decisions in the compact form are accepted: `allow`, `registered` or `refuse`.
        compact: CompactRule = CompactRule::Registered,
    }
}

section! {
    /// `[idempotency]`: the `Idempotency-Key` header.
    Idempotency {
        /// Whether submissions must carry it.
        required: bool = false,
        lifetime_seconds: u64 = 24 * 3_600,
    }
}

section! {
    /// `[push]`: channels.
    Push {
        ping_seconds: u64 = 30,
        /// How long a WebSocket may be silent.
        idle_seconds: u64 = 120,
        sse_ping_seconds: u64 = 15,
        /// First delay before an unacknowledged message is sent again; it doubles.
        reoffer_seconds: u64 = 10,
        /// Over how long the closing of all channels is spread, when the node drains or
        /// `outage_seconds` are over.
        drain_spread_ms: u64 = 2_000,
    }
    constants {
        /// How long a client may take to accept one message before its channel is closed. It
        /// catches up after it reconnects.
        send_timeout_seconds: u64 = 10,
        reoffer_max_seconds: u64 = 300,
        /// How long channels stay open while the node does not reach the database.
        outage_seconds: u64 = 300,
    }
}

impl Push {
    /// Longest delay before an unacknowledged message is sent again.
    pub fn longest_reoffer(&self) -> u64 {
        self.reoffer_max_seconds.max(self.reoffer_seconds)
    }
}

/// How nodes learn of new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WakeMode {
    Notify,
    /// Polling alone, for engines without LISTEN/NOTIFY.
    Poll,
}

section! {
    /// `[wake]`: how nodes wake each other.
    Wake {
        mode: WakeMode = WakeMode::Notify,
    }
    constants {
        /// How often the fallback polls while notifications arrive.
        sweep_ms: u64 = 5_000,
        /// How often it polls while they do not, or in mode `poll`.
        poll_ms: u64 = 250,
        canary_ms: u64 = 5_000,
        /// How soon the canary must be received.
        canary_timeout_ms: u64 = 2_000,
    }
}

section! {
    /// `[retention]`: what is kept, and how long.
    Retention {
        exchange_seconds: u64 = 90 * 24 * 3_600,
        prompt_seconds: u64 = 90 * 24 * 3_600,
        /// Sessions, since their last event, and enforcers that have not been seen since.
        session_seconds: u64 = 90 * 24 * 3_600,
        audit_seconds: u64 = 400 * 24 * 3_600,
        /// Pairings after they were revoked, and routing tokens after they were replaced.
        pairing_seconds: u64 = 400 * 24 * 3_600,
        /// The share of the time that deleting may take.
        share_percent: u32 = 10,
        /// Nonces of decisions: one that is forgotten could be used again.
        nonce_seconds: u64 = 400 * 24 * 3_600,
        /// Artifacts of finished exchanges and snapshots of ended sessions, if shorter; 0 keeps
        /// them as long as the row.
        scrub_seconds: u64 = 0,
    }
    constants {
        every_seconds: u64 = 600,
        /// Invitations after they expired, used or not.
        invitation_seconds: u64 = 30 * 24 * 3_600,
    }
}

section! {
    /// `[security]`: what the nodes of a cluster share.
    Security {
        /// Key of the hashes of pairing codes, of routing tokens, of notifications and of the copies of messages between nodes: the same on
        /// every node, at least 32 characters.
        cluster_secret: Secret = Secret::default(),
        cluster_secret_file: Option<PathBuf> = None,
        /// Whether the node made up its secret, so that it lasts no longer than the node.
        #[serde(skip)]
        is_generated: bool = false,
    }
}

section! {
    /// `[pairing]`: pairing by code.
    Pairing {
        /// Whether only paired enforcers may submit to an approver, and only paired approvers may
        /// prompt an enforcer.
        required: bool = false,
        code_seconds: u64 = 600,
        /// Wrong codes per minute before a principal must wait.
        guesses_per_principal: u32 = 10,
        /// Wrong codes per minute in a tenant before everyone who entered a wrong one must wait.
        guesses_per_tenant: u32 = 100,
    }
}

section! {
    /// Which enforcers are online.
    Presence {
    }
    constants {
        /// How often a node records the calls it has served.
        write_seconds: u64 = 15,
        /// Most enforcers in a list: the most recently seen.
        list_max: u32 = 10_000,
    }
}

section! {
    /// `[platform]`: the operator.
    Platform {
        operator_key: Secret = Secret::default(),
        operator_key_file: Option<PathBuf> = None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Json,
    Pretty,
}

section! {
    /// `[log]`: logs, on standard error; and the log of decisions and outcomes that clients check.
    Log {
        format: LogFormat = LogFormat::Pretty,
        /// Filter of the lines to log, such as `info,countersign=debug`.
        filter: String = "info".into(),
        /// The key that signs the checkpoints of decisions and outcomes, 32 bytes in base64; none are
        /// logged without it.
        key: Secret = Secret::default(),
        key_file: Option<PathBuf> = None,
        /// The name of the deployment in the checkpoints.
        origin: String = String::new(),
    }
    constants {
        /// How often a node looks for decisions and outcomes to log.
        build_ms: u64 = 5_000,
        /// For how long events are read again: after a failover the clocks may differ.
        overlap_ms: u64 = 60_000,
    }
}

impl Log {
    /// The seed of the key that signs checkpoints: 32 bytes in base64.
    pub fn signing_seed(&self) -> Option<[u8; 32]> {
        let bytes = STANDARD.decode(self.key.expose()).ok()?;
        bytes.try_into().ok()
    }
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub server: Server,
    pub tls: Tls,
    pub node: Node,
    pub database: Database,
    pub protocol: Protocol,
    pub artifacts: Artifacts,
    pub decisions: Decisions,
    pub idempotency: Idempotency,
    pub limits: Limits,
    pub rates: Rates,
    pub push: Push,
    pub wake: Wake,
    pub retention: Retention,
    pub security: Security,
    pub pairing: Pairing,
    /// It has no keys.
    #[serde(skip)]
    pub presence: Presence,
    pub platform: Platform,
    pub page: Page,
    pub notifications: Notifications,
    pub auth: Auth,
    pub log: Log,
    pub telemetry: Telemetry,
}

impl Config {
    /// The constants of each section that has any, for documents.
    pub fn constants(&self) -> serde_json::Value {
        serde_json::json!({
            "server": self.server.constants(),
            "tls": self.tls.constants(),
            "database": self.database.constants(),
            "limits": self.limits.constants(),
            "rates": self.rates.constants(),
            "push": self.push.constants(),
            "wake": self.wake.constants(),
            "retention": self.retention.constants(),
            "presence": self.presence.constants(),
            "notifications": self.notifications.constants(),
            "auth": self.auth.constants(),
            "log": self.log.constants(),
        })
    }

    /// Where a client on this machine reaches the node.
    pub fn local_url(&self) -> String {
        let scheme = match self.tls.mode {
            TlsMode::Off => "http",
            TlsMode::On | TlsMode::Upstream => "https",
        };
        let listen = self.server.listen;
        if listen.ip().is_unspecified() {
            return format!("{scheme}://localhost:{}", listen.port());
        }
        format!("{scheme}://{listen}")
    }
}
