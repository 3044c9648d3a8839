//! `countersign dev`: a whole gateway with a private PostgreSQL and a demo tenant. Its nodes are
//! processes, so that one can be killed while the others run on. All of it ends together.

mod banner;
mod binaries;
mod data_dir;
mod demo;
mod first_steps;
mod nodes;
mod options;
pub mod postgres;
mod private_file;
mod profile;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::data_dir::DataDir;
use self::demo::DemoAccounts;
use self::first_steps::FirstSteps;
use self::nodes::DevNodes;
pub use self::options::DevOptions;
use self::postgres::PrivatePostgres;
use self::private_file::write_private;
use countersign::clock::Clock;
use countersign::config::{Config, Secret};
use countersign::gateway::identity::administration::AdminService;
use countersign::protocol::id::{NodeId, TextId};
use countersign::store::Store;
use countersign::store::audit::AuditActor;
use countersign::store::database::schema;
use countersign::telemetry::Metrics;

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
