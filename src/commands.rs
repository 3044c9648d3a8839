//! The commands of the binary: each reads the configuration, does one thing, and says what it did.

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
use countersign::gateway::administration::{Administration, CredentialRequest};
use countersign::http::platform::parse_thumbprint;
use countersign::protocol::id::{ApproverId, CredentialId, NodeId, SignerKeyId, TenantId, TextId};
use countersign::protocol::signature::PublicKey;
use countersign::protocol::timestamp::Timestamp;
use countersign::store::Store;
use countersign::store::audit::Actor;
use countersign::store::credential::RoleName;
use countersign::store::schema::{self, Wall};
use countersign::store::signing_key::NewSigningKey;
use countersign::telemetry::{self, Metrics};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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

/// `countersign tenant`.
#[derive(Subcommand)]
enum TenantCommand {
    /// Make a tenant.
    Create {
        /// Its name.
        name: String,
    },
    /// List tenants.
    List,
    /// Disable a tenant: its credentials stop, its data stays.
    Disable {
        /// Its id.
        tenant: String,
    },
}

/// `countersign credential`.
#[derive(Subcommand)]
enum CredentialCommand {
    /// Make a credential; its key is shown this once.
    Create {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// enforcer, approver or admin.
        #[arg(long)]
        role: String,
        /// The one id it may act as.
        #[arg(long)]
        bound_id: Option<String>,
        /// A client certificate's SHA-256 thumbprint, instead of an API key.
        #[arg(long)]
        thumbprint: Option<String>,
        /// When it ends (RFC 3339).
        #[arg(long)]
        expires_at: Option<String>,
    },
    /// List credentials.
    List {
        /// Only of this tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Revoke a credential.
    Revoke {
        /// Its id.
        credential: String,
    },
}

/// `countersign key`.
#[derive(Subcommand)]
enum KeyCommand {
    /// Register a signing key.
    Put {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// The approver.
        #[arg(long)]
        approver: String,
        /// The key's name.
        #[arg(long)]
        key: String,
        /// The Ed25519 public key, in base64url.
        #[arg(long)]
        public_key: String,
        /// When it begins to be valid (RFC 3339).
        #[arg(long)]
        not_before: Option<String>,
        /// When it ends to be valid (RFC 3339).
        #[arg(long)]
        not_after: Option<String>,
    },
    /// List an approver's keys.
    List {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// The approver.
        #[arg(long)]
        approver: String,
    },
    /// Revoke a signing key.
    Revoke {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// The approver.
        #[arg(long)]
        approver: String,
        /// The key's name.
        #[arg(long)]
        key: String,
    },
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
        store.wall().await.context("database")? != Wall::Missing,
        Wall::MISSING
    );
    Ok(Administration::new(
        store,
        Clock::system(),
        Actor::command_line(),
    ))
}

fn id<T: TextId>(what: &'static str, text: &str) -> anyhow::Result<T> {
    T::parse(text).with_context(|| {
        format!(
            "{what} should be {}",
            countersign::protocol::id::ID_EXPECTED
        )
    })
}

/// A time on the command line.
fn time(text: &str) -> anyhow::Result<Timestamp> {
    Timestamp::parse(text).with_context(|| format!("{text} should be an RFC 3339 time"))
}

async fn tenant(administration: &Administration, command: TenantCommand) -> anyhow::Result<()> {
    match command {
        TenantCommand::Create { name } => {
            let tenant = administration.create_tenant(&name).await?;
            print(&serde_json::json!({ "tenantId": tenant, "name": name }))
        }
        TenantCommand::List => print(&administration.tenants().await?),
        TenantCommand::Disable { tenant } => {
            administration
                .disable_tenant(&id::<TenantId>("tenant", &tenant)?)
                .await?;
            say("disabled")
        }
    }
}

async fn credential(
    administration: &Administration,
    command: CredentialCommand,
) -> anyhow::Result<()> {
    match command {
        CredentialCommand::Create {
            tenant,
            role,
            bound_id,
            thumbprint,
            expires_at,
        } => {
            let request = CredentialRequest {
                role: RoleName::parse(&role)
                    .context("role should be enforcer, approver or admin")?,
                bound_id,
                thumbprint: thumbprint
                    .map(|text| {
                        parse_thumbprint(&text)
                            .context("thumbprint should be a SHA-256 in hexadecimal")
                    })
                    .transpose()?,
                expires_at: expires_at.as_deref().map(time).transpose()?,
            };
            let made = administration
                .create_credential(&id("tenant", &tenant)?, request)
                .await?;
            print(&serde_json::json!({ "credentialId": made.id, "apiKey": made.api_key }))
        }
        CredentialCommand::List { tenant } => {
            let tenant = tenant
                .map(|tenant| id::<TenantId>("tenant", &tenant))
                .transpose()?;
            print(&administration.credentials(tenant.as_ref(), None).await?)
        }
        CredentialCommand::Revoke { credential } => {
            let credential = id::<CredentialId>("credential", &credential)?;
            administration
                .revoke_credential(None, None, &credential)
                .await?;
            say("revoked")
        }
    }
}

async fn key(administration: &Administration, command: KeyCommand) -> anyhow::Result<()> {
    match command {
        KeyCommand::Put {
            tenant,
            approver,
            key,
            public_key,
            not_before,
            not_after,
        } => {
            let public_key = PublicKey::parse(&public_key)
                .context("public-key should be 32 bytes in base64url")?;
            let key = NewSigningKey {
                id: id("key", &key)?,
                public_key,
                not_before: not_before.as_deref().map(time).transpose()?,
                not_after: not_after.as_deref().map(time).transpose()?,
            };
            let (tenant, approver) = (id("tenant", &tenant)?, id("approver", &approver)?);
            administration
                .register_key(&tenant, &approver, &key, false)
                .await?;
            say("registered")
        }
        KeyCommand::List { tenant, approver } => {
            let (tenant, approver) = (
                id("tenant", &tenant)?,
                id::<ApproverId>("approver", &approver)?,
            );
            let keys = administration.keys(&tenant, &approver).await?;
            print(
                &keys
                    .iter()
                    .map(countersign::http::platform::key_json)
                    .collect::<Vec<_>>(),
            )
        }
        KeyCommand::Revoke {
            tenant,
            approver,
            key,
        } => {
            let (tenant, approver) = (id("tenant", &tenant)?, id("approver", &approver)?);
            administration
                .revoke_key(&tenant, &approver, &id::<SignerKeyId>("key", &key)?)
                .await?;
            say("revoked")
        }
    }
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
