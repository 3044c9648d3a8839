//! The commands that run a node, or administer a gateway through its database.

mod administer;
mod check;
#[cfg(feature = "dev")]
mod dev;
mod device;
mod health;
mod invite;
mod key;
mod log;
mod page;
mod serve;
mod token;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use countersign::config::{Config, Secret};
use countersign::store::database::schema;
use countersign::telemetry;

use self::administer::{CredentialCommand, TenantCommand, administration, credential, tenant};
#[cfg(feature = "dev")]
use self::dev::DevArgs;
use self::device::{DeviceCommand, device};
use self::invite::{InviteArgs, invite};
use self::key::{KeyCommand, key};
use self::page::PageArgs;
use self::serve::{ServeArgs, serve};
use self::token::{TokenCommand, token};
use crate::commands::output::print_line;

/// Options of every command of the gateway.
#[derive(Args)]
pub struct GatewayOptions {
    /// The gateway's configuration file (TOML); COUNTERSIGN_… variables override it.
    #[arg(
        long,
        global = true,
        env = "COUNTERSIGN_CONFIG_FILE",
        value_name = "FILE",
        help_heading = "Gateway options"
    )]
    config: Option<PathBuf>,
    /// The gateway's PostgreSQL, instead of database.url.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Gateway options"
    )]
    database_url: Option<String>,
}

#[derive(Subcommand)]
pub enum GatewayCommand {
    /// Run a node.
    Serve(ServeArgs),
    /// Apply missing database migrations.
    Migrate,
    /// Check the configuration, its files, the database, its schema and notifications.
    Check {
        /// Print the findings as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check whether a running node is ready, for a container's health check.
    Health {
        /// The node's address; by default the configured one.
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
    },
    /// Try it: run a gateway with a private PostgreSQL and a demo tenant.
    #[cfg(feature = "dev")]
    Dev(DevArgs),
    /// Write the approvers' page to a directory for another host, or verify a hosted page.
    Page(PageArgs),
    /// Manage tenants.
    Tenant(AdminArgs<TenantCommand>),
    /// Manage credentials.
    Credential(AdminArgs<CredentialCommand>),
    /// Manage approvers' signing keys.
    Key(AdminArgs<KeyCommand>),
    /// Invite someone: print a link that works once.
    Invite(InviteArgs),
    /// List approvers' devices, or reset them.
    Device(AdminArgs<DeviceCommand>),
    /// Revoke JWTs and OAuth 2.0 tokens of another issuer.
    Token(AdminArgs<TokenCommand>),
    /// `log restart`, which is beside `log check`.
    #[command(skip)]
    RestartLog {
        /// Every tenant, if none is named.
        tenant: Option<String>,
    },
}

// Not a doc comment: it would replace the help of the commands.
#[derive(Args)]
pub struct AdminArgs<C: Subcommand> {
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: C,
}

pub async fn run(options: GatewayOptions, command: GatewayCommand) -> anyhow::Result<()> {
    if let GatewayCommand::Page(args) = &command {
        return page::run(args).await;
    }
    let GatewayOptions {
        config: config_file,
        database_url,
    } = options;
    let loaded = Config::load(config_file.as_deref()).map(|mut config| {
        if let Some(url) = &database_url {
            config.database.url = Secret::from(url.as_str());
        }
        config
    });
    let config = match (loaded, &command) {
        (Err(error), GatewayCommand::Check { json }) => {
            return Box::pin(check::run(Err(error), *json)).await;
        }
        (loaded, _) => loaded.context("configuration")?,
    };
    // `dev` has a log file.
    #[cfg(feature = "dev")]
    let has_log_file = matches!(command, GatewayCommand::Dev(_));
    #[cfg(not(feature = "dev"))]
    let has_log_file = false;
    if !has_log_file {
        telemetry::start(&config.log);
    }
    match command {
        GatewayCommand::Page(_) => Ok(()),
        GatewayCommand::Serve(args) => Box::pin(serve(config, args)).await,
        GatewayCommand::Migrate => {
            config.validate()?;
            schema::migrate(config.database.url.expose()).await?;
            print_line("the schema is up to date")
        }
        GatewayCommand::Check { json } => Box::pin(check::run(Ok(config), json)).await,
        GatewayCommand::Health { address } => print_line(&health::ask(&config, address).await?),
        #[cfg(feature = "dev")]
        GatewayCommand::Dev(args) => {
            Box::pin(dev::run(args, config, config_file, database_url)).await
        }
        GatewayCommand::Tenant(AdminArgs { json, command }) => {
            tenant(&administration(&config).await?, command, json).await
        }
        GatewayCommand::Credential(AdminArgs { json, command }) => {
            credential(&administration(&config).await?, command, json).await
        }
        GatewayCommand::Key(AdminArgs { json, command }) => {
            key(&administration(&config).await?, command, json).await
        }
        GatewayCommand::Invite(args) => invite(config, args).await,
        GatewayCommand::Device(AdminArgs { json, command }) => {
            device(&administration(&config).await?, command, json).await
        }
        GatewayCommand::Token(AdminArgs { json, command }) => {
            token(&administration(&config).await?, command, json).await
        }
        GatewayCommand::RestartLog { tenant } => log::restart(&config, tenant).await,
    }
}
