//! `countersign dev`: a whole gateway with a private PostgreSQL and a demo tenant. Its nodes are
//! processes, so that one can be killed while the others run on. All of it ends together.

mod banner;
mod binaries;
mod demo;
mod nodes;
pub mod postgres;
mod profile;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::demo::DemoAccounts;
use self::nodes::DevNodes;
use self::postgres::PrivatePostgres;
use countersign::clock::Clock;
use countersign::config::{Config, Secret};
use countersign::gateway::identity::administration::AdminService;
use countersign::protocol::id::{NodeId, TextId};
use countersign::store::Store;
use countersign::store::audit::AuditActor;
use countersign::store::database::schema;
use countersign::telemetry::Metrics;

#[derive(Debug)]
pub struct DevOptions {
    /// The address of the first node. The others use the ports after it, or free ones for port 0.
    pub listen: SocketAddr,
    pub nodes: u16,
    pub data_dir: Option<PathBuf>,
    /// Whether to remove all data at the end.
    pub ephemeral: bool,
    /// Written once every node is ready.
    pub ready_file: Option<PathBuf>,
    pub config_file: Option<PathBuf>,
    pub database_url: Option<String>,
}

impl DevOptions {
    fn address(&self, node: u16) -> anyhow::Result<SocketAddr> {
        let mut address = self.listen;
        if address.port() != 0 {
            let port = address.port().checked_add(node);
            address.set_port(port.context("there are not that many ports after --listen")?);
        }
        Ok(address)
    }

    /// Fails if a node could not listen. Without this check, that would show only after the
    /// database and the keys have been created.
    fn check_addresses(&self) -> anyhow::Result<()> {
        for node in 0..self.nodes {
            let address = self.address(node)?;
            TcpListener::bind(address).map_err(|error| {
                anyhow::anyhow!(
                    "cannot listen on {address}: {error}; stop what uses this address (another `countersign dev`?), or choose \
                     another with --listen"
                )
            })?;
        }
        Ok(())
    }
}

/// Runs a whole gateway until `stop`.
pub async fn run(options: DevOptions, base: Config, stop: CancellationToken) -> anyhow::Result<()> {
    options.check_addresses()?;
    let data_dir = DataDir::open(&options)?;
    if let Some(url) = &options.database_url {
        return run_on(&options, base, url, &data_dir.path, stop).await;
    }
    let postgres = PrivatePostgres::start(&data_dir.path).await?;
    let outcome = run_on(&options, base, &postgres.url, &data_dir.path, stop).await;
    // PostgreSQL is stopped even if the nodes failed.
    postgres.stop().await?;
    outcome
}

async fn run_on(
    options: &DevOptions,
    mut config: Config,
    url: &str,
    data_dir: &Path,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    config.database.url = Secret::from(url);
    schema::migrate(url).await?;
    let administration = open_administration(&config)?;
    let demo =
        DemoAccounts::prepare(&administration, data_dir, options.database_url.as_deref()).await?;
    if config.security.cluster_secret.is_empty() {
        config.security.cluster_secret = Secret::from(demo.cluster_secret.as_str());
    }
    let mut nodes = DevNodes::start(options, &config, &demo, data_dir).await?;
    let outcome = async {
        let has_page = config.page.enabled;
        let steps = FirstSteps::prepare(&administration, &demo, &nodes, has_page).await?;
        if let Some(file) = &options.ready_file {
            let ready = serde_json::json!({
                "nodes": nodes.urls,
                "metrics": nodes.metrics,
                "pids": nodes.pids(),
                "databaseUrl": url,
                "tenantId": demo.tenant_id,
                "operator": { "apiKey": demo.operator },
                "admin": { "apiKey": demo.admin },
                "enforcer": { "id": demo::ENFORCER, "apiKey": demo.enforcer },
                "approver": { "id": demo::APPROVER, "apiKey": demo.approver },
                "invitation": steps.invitation,
                "profile": steps.profile,
            });
            write_private(file, &serde_json::to_vec_pretty(&ready)?)?;
        }
        banner::print(&steps, &nodes, &demo, url, data_dir, options);
        nodes.watch(&stop).await
    }
    .await;
    nodes.stop().await;
    outcome
}

fn open_administration(config: &Config) -> anyhow::Result<AdminService> {
    let clock = Clock::system();
    let tasks = TaskTracker::new();
    let node = NodeId::parse("dev").context("no node id")?;
    let metrics = Arc::new(Metrics::new(&clock));
    let store = Store::open(config, &node, &clock, &metrics, &tasks)?;
    Ok(AdminService::new(&store, clock, AuditActor::command_line()))
}

/// The links and names that a first user needs.
struct FirstSteps {
    invitation: String,
    /// Whether the invitation can be opened in a browser.
    has_page: bool,
    has_joined: bool,
    /// The profile with the enforcer, if it is not the default one.
    profile: Option<&'static str>,
    /// Why the profile could not be written.
    problem: Option<String>,
}

impl FirstSteps {
    async fn prepare(
        administration: &AdminService,
        demo: &DemoAccounts,
        nodes: &DevNodes,
        has_page: bool,
    ) -> anyhow::Result<Self> {
        let page = nodes.urls.first().map_or("", String::as_str);
        let written = profile::write(demo, &nodes.urls);
        Ok(Self {
            invitation: demo.invite(administration, page).await?,
            has_page,
            has_joined: demo.has_joined(administration).await?,
            profile: written.as_ref().copied().unwrap_or_default(),
            problem: written.err().map(|error| error.to_string()),
        })
    }
}

/// Writes a file atomically, readable by its owner only because it contains keys.
fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let part = path.with_extension("part");
    // A link that somebody else left there is not followed.
    let _absent = std::fs::remove_file(&part);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&part, path)
}

/// The data directory, removed on drop if it is ephemeral.
struct DataDir {
    path: PathBuf,
    ephemeral: bool,
}

impl DataDir {
    fn open(options: &DevOptions) -> anyhow::Result<Self> {
        let path = match (&options.data_dir, options.ephemeral) {
            (Some(path), _) => path.clone(),
            (None, true) => {
                std::env::temp_dir().join(format!("countersign-{}", Clock::system().operation_id()))
            }
            (None, false) => default_data_dir(),
        };
        std::fs::create_dir_all(&path)
            .map_err(|error| anyhow::anyhow!("cannot create {}: {error}", path.display()))?;
        Ok(Self {
            path,
            ephemeral: options.ephemeral,
        })
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if self.ephemeral
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the data directory could not be removed");
        }
    }
}

/// A directory in the user's home; for root one of the system, since PostgreSQL's account cannot
/// enter root's home.
fn default_data_dir() -> PathBuf {
    if nix::unistd::geteuid().is_root() {
        return PathBuf::from("/var/lib/countersign-dev");
    }
    let base = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    base.unwrap_or_else(std::env::temp_dir)
        .join("countersign-dev")
}
