//! The commands of the binary: each reads the configuration, does one thing, and says what it did.

mod administer;
mod check;
mod health;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use countersign::app::App;
use countersign::clock::Clock;
use countersign::config::{Config, Secret, TlsMode};
use countersign::gateway::administration::Administration;
use countersign::protocol::id::{NodeId, TextId as _};
use countersign::store::Store;
use countersign::store::audit::Actor;
use countersign::store::schema::{self, RowSecurity};
use countersign::telemetry::{self, Metrics};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::administer::{CredentialCommand, KeyCommand, TenantCommand, credential, key, tenant};
use crate::dev::{self, DevOptions};

/// An open, self-hosted approval gateway for AI agents.
#[derive(Parser)]
#[command(version, about)]
pub struct Cli {
    /// A TOML file with the configuration; COUNTERSIGN_… variables override it.
    #[arg(
        long,
        global = true,
        env = "COUNTERSIGN_CONFIG_FILE",
        value_name = "FILE"
    )]
    config: Option<PathBuf>,
    /// PostgreSQL to use, instead of database.url.
    #[arg(long, global = true, value_name = "URL")]
    database_url: Option<String>,
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Subcommand)]
enum Command {
    /// Run a node.
    Serve(ServeArgs),
    /// Apply the migrations that are missing.
    Migrate,
    /// Check the configuration and what it names: files, the database, its schema, notifications.
    Check {
        /// Print the findings as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask a running node whether it is ready; for a container's health check.
    Health {
        /// The node; by default the configured address.
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
    },
    /// Run a whole gateway on a private PostgreSQL, with a demo tenant.
    Dev(DevArgs),
    /// Manage tenants.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Manage credentials.
    #[command(subcommand)]
    Credential(CredentialCommand),
    /// Manage approvers' signing keys.
    #[command(subcommand)]
    Key(KeyCommand),
}

/// `countersign serve`.
#[derive(Args)]
struct ServeArgs {
    /// Where to listen, instead of server.listen.
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Written with the node's URL once it is ready, and on a second line that of its metrics.
    #[arg(long, hide = true)]
    ready_file: Option<PathBuf>,
    /// Stop when standard input ends: the parent is gone.
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

/// `countersign dev`.
#[derive(Args)]
struct DevArgs {
    /// Where the first node listens; the others follow. Port 0: free ones.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// How many nodes, each a process of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// Where to keep PostgreSQL and the demo credentials.
    #[arg(long, conflicts_with = "ephemeral")]
    data_dir: Option<PathBuf>,
    /// Leave nothing behind.
    #[arg(long)]
    ephemeral: bool,
    /// A file to write, whole, once every node is ready.
    #[arg(long)]
    ready_file: Option<PathBuf>,
}

/// Runs a command.
pub async fn run(cli: Cli) -> anyhow::Result<()> {
    let database_url = cli.database_url;
    let loaded = Config::load(cli.config.as_deref()).map(|mut config| {
        if let Some(url) = &database_url {
            config.database.url = Secret::from(url.as_str());
        }
        config
    });
    let config = match (loaded, &cli.command) {
        (Err(error), Command::Check { json }) => return check::run(Err(error), *json).await,
        (loaded, _) => loaded.context("configuration")?,
    };
    telemetry::start(&config.log);
    match cli.command {
        Command::Serve(args) => Box::pin(serve(config, args)).await,
        Command::Migrate => {
            config.validate()?;
            schema::migrate(config.database.url.expose()).await?;
            say("the schema is up to date")
        }
        Command::Check { json } => check::run(Ok(config), json).await,
        Command::Health { address } => say(&health::ask(&config, address).await?),
        Command::Dev(args) => {
            let options = DevOptions {
                listen: args.listen,
                nodes: args.nodes,
                data_dir: args.data_dir,
                ephemeral: args.ephemeral,
                ready_file: args.ready_file,
                config_file: cli.config,
                database_url,
            };
            anyhow::ensure!(
                options.listen.ip().is_loopback(),
                "dev serves plain HTTP, on loopback only"
            );
            dev::run(options, config, stop_signals()?).await
        }
        Command::Tenant(command) => tenant(&administration(&config).await?, command).await,
        Command::Credential(command) => credential(&administration(&config).await?, command).await,
        Command::Key(command) => key(&administration(&config).await?, command).await,
    }
}

/// Cancelled by the first Ctrl-C, SIGTERM, or closed terminal.
fn stop_signals() -> anyhow::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        told.cancel();
    });
    Ok(stop)
}

async fn serve(mut config: Config, args: ServeArgs) -> anyhow::Result<()> {
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    // A channel is a file descriptor, and the usual soft limit is for programs that open files.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let stop = stop_signals()?;
    if args.stop_with_stdin {
        let stop = stop.clone();
        tokio::spawn(async move {
            let mut byte = [0];
            while tokio::io::stdin()
                .read(&mut byte)
                .await
                .is_ok_and(|count| count > 0)
            {}
            stop.cancel();
        });
    }
    let scheme = match config.tls.mode {
        TlsMode::On => "https",
        TlsMode::Off | TlsMode::Upstream => "http",
    };
    let app = App::build(config, Clock::system()).await?;
    if let Some(file) = args.ready_file {
        let part = file.with_extension("part");
        let metrics = app.metrics_address();
        let metrics = metrics.map(|address| format!("\nhttp://{address}"));
        let text = format!(
            "{scheme}://{}{}",
            app.address(),
            metrics.unwrap_or_default()
        );
        tokio::fs::write(&part, text).await?;
        tokio::fs::rename(&part, &file).await?;
    }
    app.run(stop).await;
    Ok(())
}

fn open(config: &Config) -> anyhow::Result<Arc<Store>> {
    let node = NodeId::parse("command-line").context("no node id")?;
    let clock = Clock::system();
    let metrics = Arc::new(Metrics::new(&clock));
    Ok(Arc::new(Store::open(
        config,
        &node,
        &clock,
        &metrics,
        &TaskTracker::new(),
    )?))
}

async fn administration(config: &Config) -> anyhow::Result<Administration> {
    config.validate()?;
    let store = open(config)?;
    // An empty list would look like an empty database.
    anyhow::ensure!(
        store.row_security().await.context("database")? != RowSecurity::Missing,
        RowSecurity::MISSING
    );
    Ok(Administration::new(
        store,
        Clock::system(),
        Actor::command_line(),
    ))
}

/// Prints a value as JSON, for people and for scripts.
fn print<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    say(&serde_json::to_string_pretty(value)?)
}

#[expect(
    clippy::print_stdout,
    clippy::unnecessary_wraps,
    reason = "a command's answer, as the last thing it does"
)]
fn say(text: &str) -> anyhow::Result<()> {
    println!("{text}");
    Ok(())
}
