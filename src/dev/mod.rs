//! `countersign dev`: a whole gateway with a private PostgreSQL and a demo tenant. Its nodes are
//! processes, so that one can be killed while the others run on. All of it ends together.

mod banner;
mod binaries;
mod data_dir;
mod demo;
mod first_steps;
mod lan;
mod nodes;
mod options;
pub mod postgres;
mod private_file;
mod profile;
mod reset;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::banner::StartBanner;
use self::data_dir::DataDir;
pub use self::data_dir::RunningDev;
use self::demo::DemoAccounts;
use self::first_steps::FirstSteps;
pub use self::lan::LanChoice;
use self::lan::LanService;
use self::nodes::{DevNodes, NodeSettings};
pub use self::options::DevOptions;
use self::postgres::PrivatePostgres;
use self::private_file::write_private;
pub use self::reset::reset;
use countersign::clock::Clock;
use countersign::config::{Config, Secret};
use countersign::gateway::identity::administration::AdminService;
use countersign::protocol::id::{NodeId, TextId};
use countersign::store::Store;
use countersign::store::audit::AuditActor;
use countersign::store::database::schema;
use countersign::telemetry::{self, Metrics};

/// One run, before its database.
struct DevRun {
    options: DevOptions,
    config: Config,
    data_dir: DataDir,
    lan: Option<SocketAddr>,
}

/// Runs a whole gateway until `stop`.
pub async fn run(
    options: DevOptions,
    config: Config,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let lan = options.lan.as_ref().map(LanService::check).transpose()?;
    options.check_addresses()?;
    let data_dir = DataDir::open(&options)?;
    telemetry::start_in(&config.log, data_dir.open_log()?);
    let run = DevRun {
        options,
        config,
        data_dir,
        lan,
    };
    if let Some(url) = run.options.database_url.clone() {
        return run.on(&url, None, stop).await;
    }
    let postgres = PrivatePostgres::start(&run.data_dir.path).await?;
    let url = postgres.url.clone();
    let outcome = run.on(&url, Some(&postgres), stop).await;
    // PostgreSQL is stopped even if the nodes failed.
    postgres.stop().await?;
    outcome
}

impl DevRun {
    async fn on(
        &self,
        url: &str,
        postgres: Option<&PrivatePostgres>,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let (options, data_dir) = (&self.options, &self.data_dir);
        let mut config = self.config.clone();
        config.database.url = Secret::from(url);
        schema::migrate(url).await?;
        let administration = open_administration(&config)?;
        let demo = DemoAccounts::prepare(&administration, data_dir).await?;
        if config.security.cluster_secret.is_empty() {
            config.security.cluster_secret = Secret::from(demo.cluster_secret.as_str());
        }
        let restricted_url = match postgres {
            Some(postgres) if options.strict => Some(postgres.restricted_url().await?),
            _ => None,
        };
        let lan = match self.lan {
            None => None,
            Some(address) => {
                Some(LanService::start(address, &data_dir.path, &data_dir.run_dir()).await?)
            }
        };
        let settings = NodeSettings {
            options,
            config: &config,
            demo: &demo,
            data_dir,
            restricted_url,
            lan: lan.as_ref(),
        };
        let mut nodes = DevNodes::start(&settings).await?;
        let outcome = async {
            let lan = lan.as_ref();
            let steps = FirstSteps::prepare(&administration, data_dir, &demo, &nodes, lan).await?;
            let (page, _) = steps.invitation.split_once("/#").unwrap_or_default();
            data_dir.announce(&RunningDev {
                database_url: url.to_owned(),
                tenant_id: demo.tenant_id.clone(),
                page: page.to_owned(),
            })?;
            let banner = StartBanner {
                options,
                data_dir,
                demo: &demo,
                nodes: &nodes,
                steps: &steps,
                lan,
                database_url: url,
                has_page: config.page.enabled,
            };
            if let Some(file) = &options.ready_file {
                write_private(file, &serde_json::to_vec_pretty(&banner.ready())?)?;
            }
            banner.print();
            nodes.watch(&stop).await
        }
        .await;
        nodes.stop().await;
        outcome
    }
}

fn open_administration(config: &Config) -> anyhow::Result<AdminService> {
    let clock = Clock::system();
    let tasks = TaskTracker::new();
    let node = NodeId::parse("dev").context("no node id")?;
    let metrics = Arc::new(Metrics::new(&clock));
    let store = Store::open(config, &node, &clock, &metrics, &tasks)?;
    Ok(AdminService::new(&store, clock, AuditActor::command_line()))
}
