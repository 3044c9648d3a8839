//! Several nodes on one database, in this process, with a clock that the test can move.

use std::sync::Arc;
use std::time::Duration;

use countersign::app::App;
use countersign::clock::Clock;
use countersign::config::{Config, Secret};
use countersign::gateway::Gateway;
use countersign::gateway::identity::administration::{AdminService, CredentialRequest};
use countersign::protocol::credential::{CredentialKind, CredentialProfile};
use countersign::protocol::id::{CredentialId, TenantId};
use countersign::store::audit::AuditActor;
use countersign::store::identity::credential::RoleName;
use countersign::telemetry::Metrics;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::client::{Approver, Client, Enforcer};
use super::database::Database;
use super::proxy::Proxy;
use super::roles::Roles;
use super::scrape::scrape;
use super::tls::Pair;
use super::until;

/// The operator's key in every test.
pub const OPERATOR_KEY: &str = "operator-key-of-the-tests-0123456789abcdef";
/// The secret of all nodes in tests.
pub const CLUSTER_SECRET: &str = "cluster-secret-of-the-tests-0123456789abcdef";

/// One node.
pub struct TestNode {
    /// Where it listens.
    pub url: String,
    /// Where its metrics are read.
    pub metrics: String,
    /// Its use cases, for what cannot be seen from outside.
    pub gateway: Arc<Gateway>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl TestNode {
    /// Drains the node and waits until it has ended.
    pub async fn stop(self) {
        self.stop.cancel();
        self.running.await.expect("the node ends");
    }
}

/// Nodes on one database, with a tenant of their own.
pub struct Cluster {
    /// The nodes.
    pub nodes: Vec<TestNode>,
    /// Their database.
    pub database: Database,
    /// Their clock.
    pub clock: Clock,
    /// The tenant most tests use.
    pub tenant: TenantId,
    /// Manages it.
    pub administration: AdminService,
}

/// The configuration of a test node: short periods, otherwise the defaults.
pub fn config(database: &Database) -> Config {
    let mut config = Config::default();
    config.database.url = Secret::from(database.url.as_str());
    config.database.pool_size = 8;
    config.server.lame_duck_ms = 0;
    config.rates.enabled = false;
    config.telemetry.metrics_listen = "127.0.0.1:0".into();
    config.platform.operator_key = Secret::from(OPERATOR_KEY);
    config.security.cluster_secret = Secret::from(CLUSTER_SECRET);
    config
}

/// Metrics of no node.
pub fn metrics() -> Arc<Metrics> {
    Arc::new(Metrics::new(&Clock::system()))
}

/// Starts one node.
pub async fn start_node(config: Config, clock: &Clock) -> TestNode {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let app = App::build_on(config, clock.clone(), listener)
        .await
        .expect("a node");
    let stop = CancellationToken::new();
    let url = format!("http://{}", app.address());
    let metrics = app.metrics_address();
    let metrics = metrics.map_or_else(String::new, |address| format!("http://{address}/metrics"));
    let gateway = Arc::clone(app.gateway());
    let running = tokio::spawn(app.run(stop.clone()));
    TestNode {
        url,
        metrics,
        gateway,
        stop,
        running,
    }
}

impl Cluster {
    /// `count` nodes with the defaults.
    pub async fn start(count: usize) -> Self {
        Self::with(count, |_| {}).await
    }

    /// `count` nodes, configured by `change`.
    pub async fn with(count: usize, change: impl Fn(&mut Config)) -> Self {
        if let Ok(filter) = std::env::var("TEST_LOG") {
            let log = countersign::config::Log {
                filter,
                ..Default::default()
            };
            countersign::telemetry::start(&log);
        }
        Self::on(Database::create().await, count, change).await
    }

    /// One node that reaches its database through a proxy, patient with locks; its listener does
    /// not.
    pub async fn behind_proxy() -> (Self, Proxy) {
        let database = Database::create().await;
        let proxy = Proxy::start(&database.url).await;
        let cluster = Self::on(database, 1, |config| {
            config.database.listen_url = config.database.url.clone();
            config.database.url = Secret::from(proxy.url.as_str());
            config.database.lock_timeout_ms = 20_000;
            config.database.statement_timeout_ms = 30_000;
        })
        .await;
        (cluster, proxy)
    }

    /// `count` nodes on this database, configured by `change`.
    pub async fn on(database: Database, count: usize, change: impl Fn(&mut Config)) -> Self {
        let clock = Clock::system();
        let mut nodes = Vec::new();
        // Any test can also be run behind the wall: it should not notice.
        let roles = match std::env::var_os("TEST_ROW_SECURITY") {
            Some(_) => Some(Roles::make(&database, "").await),
            None => None,
        };
        for index in 0..count {
            let mut config = config(&database);
            config.node.id = format!("node-{index}");
            if let Some(roles) = &roles {
                roles.confine(&mut config);
            }
            change(&mut config);
            nodes.push(Box::pin(start_node(config, &clock)).await);
        }
        let administration = nodes
            .first()
            .expect("at least one node")
            .gateway
            .platform
            .administration(AuditActor::command_line());
        let tenant = administration
            .create_tenant("tests")
            .await
            .expect("a tenant");
        Self {
            nodes,
            database,
            clock,
            tenant,
            administration,
        }
    }

    /// Every node's address.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url.clone()).collect()
    }

    /// Waits until a node has found a row locked that this statement needs.
    pub async fn busy(&self, statement: &str) {
        let labels = [("statement", statement)];
        until("a row is busy", Duration::from_secs(10), async || {
            for node in &self.nodes {
                let read = scrape(&node.metrics).await;
                if read.count("countersign_busy_rows_total", &labels) > 0.0 {
                    return true;
                }
            }
            false
        })
        .await;
    }

    /// Waits until every node has made this many further sweeps of a kind.
    pub async fn sweeps(&self, sweep: &str, count: u32) {
        let labels = [("sweep", sweep), ("outcome", "ok")];
        for node in &self.nodes {
            let made = async || {
                let read = scrape(&node.metrics).await;
                read.count("countersign_sweep_duration_seconds_count", &labels)
            };
            let all = made().await + f64::from(count);
            until("sweeps are over", Duration::from_secs(20), async || {
                made().await >= all
            })
            .await;
        }
    }

    /// Lets time pass on every node and in the database.
    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Stops the nodes. Once their backends have ended, the database has counted all that they did.
    pub async fn stop(self) -> Database {
        drop(self.administration);
        for node in self.nodes {
            node.stop().await;
        }
        let connected = "select count(*) from pg_stat_activity
                          where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'";
        let database = self.database;
        until(
            "all backends have ended",
            Duration::from_secs(20),
            async || database.number(connected).await == 0,
        )
        .await;
        database
    }

    /// A new API key.
    pub async fn key(&self, tenant: &TenantId, role: RoleName, bound: Option<&str>) -> String {
        let request = CredentialRequest {
            role,
            bound_id: bound.map(str::to_owned),
            unbound: bound.is_none() && role != RoleName::Admin,
            kind: CredentialKind::ApiKey,
            profile: CredentialProfile::Strict,
            expires_at: None,
        };
        let made = self
            .administration
            .create_credential(tenant, request)
            .await
            .expect("a credential");
        made.api_key.expect("an API key")
    }

    /// A new API key of the profile compat.
    pub async fn compat_key(
        &self,
        tenant: &TenantId,
        role: RoleName,
        bound: Option<&str>,
    ) -> String {
        let request = CredentialRequest {
            role,
            bound_id: bound.map(str::to_owned),
            unbound: bound.is_none(),
            kind: CredentialKind::ApiKey,
            profile: CredentialProfile::Compat,
            expires_at: None,
        };
        let made = self.administration.create_credential(tenant, request).await;
        made.expect("a credential").api_key.expect("an API key")
    }

    /// Makes a certificate stand for someone of the tenant.
    pub async fn bind(&self, pair: &Pair, role: RoleName, id: &str) -> CredentialId {
        let request = CredentialRequest {
            role,
            bound_id: Some(id.to_owned()),
            unbound: false,
            kind: CredentialKind::Certificate,
            profile: CredentialProfile::Strict,
            expires_at: None,
        };
        self.bind_as(&self.tenant, pair, request).await
    }

    /// Makes a certificate stand for a credential of any tenant.
    pub async fn bind_as(
        &self,
        tenant: &TenantId,
        pair: &Pair,
        request: CredentialRequest,
    ) -> CredentialId {
        let administration = &self.administration;
        let made = administration.create_credential(tenant, request).await;
        let made = made.expect("a credential");
        let code = made.code.expect("a code").code;
        let thumbprint = pair.thumbprint();
        let bound = administration.bind_certificate(&code, &thumbprint).await;
        bound.expect("it is bound").credential_id
    }

    /// A client with any key, or none.
    pub fn client(&self, key: Option<&str>) -> Client {
        Client::new(self.urls(), key)
    }

    /// An enforcer of the tenant, with a credential bound to it.
    pub async fn enforcer(&self, id: &str) -> Enforcer {
        let key = self.key(&self.tenant, RoleName::Enforcer, Some(id)).await;
        Enforcer {
            client: self.client(Some(&key)),
            id: id.to_owned(),
        }
    }

    /// A client that may act as any enforcer of the tenant.
    pub async fn any_enforcer(&self) -> Client {
        let key = self.key(&self.tenant, RoleName::Enforcer, None).await;
        self.client(Some(&key))
    }

    /// An approver of the tenant, with a credential bound to it.
    pub async fn approver(&self, id: &str) -> Approver {
        let key = self.key(&self.tenant, RoleName::Approver, Some(id)).await;
        Approver {
            client: self.client(Some(&key)),
            id: id.to_owned(),
        }
    }

    /// An administrator of the tenant.
    pub async fn admin(&self) -> Client {
        let key = self.key(&self.tenant, RoleName::Admin, None).await;
        self.client(Some(&key))
    }

    /// The operator.
    pub fn operator(&self) -> Client {
        self.client(Some(OPERATOR_KEY))
    }
}
