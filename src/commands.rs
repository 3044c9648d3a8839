//! The command line. Results go to standard output, remarks and logs to standard error.

mod administer;
mod approver;
mod check;
mod client;
mod device;
mod doctor;
mod ending;
mod enforcer;
mod findings;
mod guard;
mod health;
mod hook;
mod install;
mod invite;
mod mcp;
mod page;
mod serve;
mod terminal;
mod token;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use countersign::app::AppError;
use countersign::clock::Clock;
use countersign::config::{Config, Secret};
use countersign::gateway::administration::AdminService;
use countersign::protocol::id::{NodeId, TextId as _};
use countersign::protocol::text::is_invisible;
use countersign::store::Store;
use countersign::store::audit::AuditActor;
use countersign::store::schema::{self, RowSecurity, SchemaState};
use countersign::telemetry::{self, Metrics};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::administer::{CredentialCommand, KeyCommand, TenantCommand, credential, key, tenant};
use self::client::ClientCommand;
use self::device::{DeviceCommand, device};
pub use self::ending::{DENIED, ExitAction};
use self::invite::{InviteArgs, invite};
use self::page::PageArgs;
use self::serve::{ServeArgs, serve};
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
        value_name = "FILE",
        help_heading = "Options of the gateway"
    )]
    config: Option<PathBuf>,
    /// PostgreSQL to use, instead of database.url.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Options of the gateway"
    )]
    database_url: Option<String>,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    #[command(flatten)]
    Client(ClientCommand),
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
    /// Write the approvers' page to a directory, for another host than the gateway's; or compare it with what a host serves.
    Page(PageArgs),
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
    /// Invite somebody: print a link that gives a credential, once.
    Invite {
        /// Print JSON, for programs.
        #[arg(long, global = true)]
        json: bool,
        #[command(flatten)]
        args: InviteArgs,
    },
    /// Look at the devices of approvers, and reset them.
    Device {
        /// Print JSON, for programs.
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: DeviceCommand,
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

#[cfg(feature = "dev")]
#[derive(clap::Args)]
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

impl Cli {
    /// Whether it is a command for one person, rather than a gateway that serves many.
    pub fn is_client(&self) -> bool {
        matches!(self.command, CliCommand::Client(_))
    }

    /// Whether an agent waits for it, and takes some exit statuses for permission.
    pub fn is_hook(&self) -> bool {
        matches!(self.command, CliCommand::Client(ClientCommand::Hook(_)))
    }
}

/// The exit status for a command that failed.
pub fn code_of(error: &anyhow::Error) -> u8 {
    ending::code_of(error)
}

pub async fn run(cli: Cli) -> anyhow::Result<ExitAction> {
    match cli.command {
        CliCommand::Client(command) => client::run(command).await,
        CliCommand::Page(args) => {
            page::run(&args).await?;
            Ok(ExitAction::DONE)
        }
        command => {
            Box::pin(serve_or_administer(cli.config, cli.database_url, command)).await?;
            Ok(ExitAction::DONE)
        }
    }
}

async fn serve_or_administer(
    config_file: Option<PathBuf>,
    database_url: Option<String>,
    command: CliCommand,
) -> anyhow::Result<()> {
    let loaded = Config::load(config_file.as_deref()).map(|mut config| {
        if let Some(url) = &database_url {
            config.database.url = Secret::from(url.as_str());
        }
        config
    });
    let config = match (loaded, &command) {
        (Err(error), CliCommand::Check { json }) => {
            return Box::pin(check::run(Err(error), *json)).await;
        }
        (loaded, _) => loaded.context("configuration")?,
    };
    telemetry::start(&config.log);
    match command {
        CliCommand::Client(_) | CliCommand::Page(_) => Ok(()),
        CliCommand::Serve(args) => Box::pin(serve(config, args)).await,
        CliCommand::Migrate => {
            config.validate()?;
            schema::migrate(config.database.url.expose()).await?;
            print_line("the schema is up to date")
        }
        CliCommand::Check { json } => Box::pin(check::run(Ok(config), json)).await,
        CliCommand::Health { address } => print_line(&health::ask(&config, address).await?),
        #[cfg(feature = "dev")]
        CliCommand::Dev(args) => {
            let options = DevOptions {
                listen: args.listen,
                nodes: args.nodes,
                data_dir: args.data_dir,
                ephemeral: args.ephemeral,
                ready_file: args.ready_file,
                config_file,
                database_url,
            };
            anyhow::ensure!(
                options.listen.ip().is_loopback(),
                "dev serves plain HTTP, on loopback only: use --listen 127.0.0.1:{}",
                options.listen.port()
            );
            dev::run(options, config, stop_signals()?).await
        }
        CliCommand::Tenant { json, command } => {
            tenant(&administration(&config).await?, command, json).await
        }
        CliCommand::Credential { json, command } => {
            credential(&administration(&config).await?, command, json).await
        }
        CliCommand::Key { json, command } => {
            key(&administration(&config).await?, command, json).await
        }
        CliCommand::Invite { json, args } => {
            invite(&config, &administration(&config).await?, args, json).await
        }
        CliCommand::Device { json, command } => {
            device(&administration(&config).await?, command, json).await
        }
        CliCommand::Token { json, command } => {
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

async fn administration(config: &Config) -> anyhow::Result<AdminService> {
    config.validate()?;
    let store = open(config)?;
    anyhow::ensure!(
        store.database.schema().await? != SchemaState::Behind,
        AppError::Schema("behind this binary")
    );
    // Otherwise every list would be empty.
    anyhow::ensure!(
        store.database.row_security().await? != RowSecurity::Missing,
        RowSecurity::MISSING
    );
    Ok(AdminService::new(
        &store,
        Clock::system(),
        AuditActor::command_line(),
    ))
}

fn print_json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    print_line(&plain_json(&serde_json::to_string_pretty(value)?))
}

/// JSON whose strings have no character that could control a terminal or hide text: the same values, escaped.
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character != '\n' && is_invisible(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _never = write!(plain, "\\u{unit:04x}");
            }
        } else {
            plain.push(character);
        }
    }
    plain
}

fn print_line(text: &str) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{text}").context("standard output")
}

/// An explanation for people, kept out of the way of scripts that read the result.
#[expect(clippy::print_stderr, reason = "standard output is for results")]
fn remark(text: &str) {
    eprintln!("{text}");
}

/// It has the artifact in plain, so others cannot read it.
fn save(file: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let writing = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    writing().with_context(|| {
        format!(
            "the decision was accepted, but {} cannot be written",
            file.display()
        )
    })
}
