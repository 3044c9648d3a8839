//! The command line. Results go to standard output, remarks and logs to standard error.

mod administer;
mod check;
mod health;
mod token;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use countersign::app::{App, AppError};
use countersign::clock::Clock;
use countersign::config::{Config, Secret, TlsMode};
use countersign::gateway::administration::Administration;
use countersign::protocol::id::{NodeId, TextId as _};
use countersign::store::Store;
use countersign::store::audit::Actor;
use countersign::store::schema::{self, RowSecurity, Schema};
use countersign::telemetry::{self, Metrics};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::administer::{CredentialCommand, KeyCommand, TenantCommand, credential, key, tenant};
use self::token::{TokenCommand, token};
#[cfg(feature = "dev")]
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
    #[cfg(feature = "dev")]
    Dev(DevArgs),
    /// Manage tenants.
    Tenant {
        /// Print JSON, for programs.
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: TenantCommand,
    },
    /// Manage credentials.
    Credential {
        /// Print JSON, for programs.
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: CredentialCommand,
    },
    /// Manage approvers' signing keys.
    Key {
        /// Print JSON, for programs.
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Revoke tokens that another issuer made: JWTs and OAuth 2.0 tokens.
    Token {
        /// Print JSON, for programs.
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: TokenCommand,
    },
}

#[derive(Args)]
struct ServeArgs {
    /// The address to listen on, instead of server.listen; a port alone means 127.0.0.1.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    listen: Option<SocketAddr>,
    /// Written with the node's URL once it is ready, and on a second line that of its metrics.
    #[arg(long, hide = true)]
    ready_file: Option<PathBuf>,
    /// Stop when standard input ends, because the parent is gone.
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

#[cfg(feature = "dev")]
#[derive(Args)]
struct DevArgs {
    /// The address of the first node; the others use the ports after it. A port alone means 127.0.0.1, port 0 free ports.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// How many nodes to run, each as a process.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// Where to keep PostgreSQL's data and the demo credentials.
    #[arg(long, conflicts_with = "ephemeral")]
    data_dir: Option<PathBuf>,
    /// Keep the data in a temporary directory and remove it at the end.
    #[arg(long)]
    ephemeral: bool,
    /// A JSON file with addresses and keys, written once every node is ready.
    #[arg(long)]
    ready_file: Option<PathBuf>,
}

/// A port alone means loopback, where a node serves without TLS.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse()
        .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:8080".to_owned())
}

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
            print_line("the schema is up to date")
        }
        Command::Check { json } => check::run(Ok(config), json).await,
        Command::Health { address } => print_line(&health::ask(&config, address).await?),
        #[cfg(feature = "dev")]
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
                "dev serves plain HTTP, on loopback only: use --listen 127.0.0.1:{}",
                options.listen.port()
            );
            dev::run(options, config, stop_signals()?).await
        }
        Command::Tenant { json, command } => {
            tenant(&administration(&config).await?, command, json).await
        }
        Command::Credential { json, command } => {
            credential(&administration(&config).await?, command, json).await
        }
        Command::Key { json, command } => key(&administration(&config).await?, command, json).await,
        Command::Token { json, command } => {
            token(&administration(&config).await?, command, json).await
        }
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
    for variable in Config::unknown_variables() {
        tracing::warn!(variable, "this variable is not a setting and is ignored");
    }
    // Each channel takes a file descriptor, and the usual soft limit is 1,024.
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
    // It waits for a database that is away.
    let building = App::build(config, Clock::system());
    let Some(app) = stop.run_until_cancelled(Box::pin(building)).await else {
        return Ok(());
    };
    let app = app?;
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
    anyhow::ensure!(
        store.database.schema().await? != Schema::Behind,
        AppError::Schema("behind this binary")
    );
    // Otherwise every list would be empty.
    anyhow::ensure!(
        store.database.row_security().await? != RowSecurity::Missing,
        RowSecurity::MISSING
    );
    Ok(Administration::new(
        &store,
        Clock::system(),
        Actor::command_line(),
    ))
}

fn print_json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    print_line(&serde_json::to_string_pretty(value)?)
}

#[expect(
    clippy::print_stdout,
    clippy::unnecessary_wraps,
    reason = "the result of a command, printed as the last thing it does"
)]
fn print_line(text: &str) -> anyhow::Result<()> {
    println!("{text}");
    Ok(())
}

/// An explanation for people, kept out of the way of scripts that read the result.
#[expect(clippy::print_stderr, reason = "standard output is for results")]
fn remark(text: &str) {
    eprintln!("{text}");
}
