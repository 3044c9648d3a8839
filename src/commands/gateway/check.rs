//! `countersign check`: finds what would keep a node from starting or working well, and says what
//! to do about it. One finding does not hide the next, unless nothing more can be checked. It
//! changes nothing.

mod fetch;
mod sign_in;

use std::io::Read as _;
use std::time::Duration;

use countersign::config::{Auth, Config, ConfigError, TlsMode, WakeMode};
use countersign::http::server::tls::TlsListener;
use countersign::protocol::id::CredentialId;
use countersign::protocol::token::KeySet;
use countersign::store::Store;
use countersign::store::database::schema::{RowSecurity, SchemaState};
use countersign::store::database::server_check::ServerFacts;
use countersign::store::error::StoreError;
use countersign::store::retention::due::RetentionFloors;

use self::fetch::fetch;
use super::administer::open_store;
use crate::commands::findings::FindingReport;
use crate::commands::findings::FindingStatus::{Failed, Warning};
use crate::commands::output::{print_json, print_line};

/// The oldest supported PostgreSQL, as `server_version_num`.
const OLDEST: i32 = 150_000;
/// Connections of a node besides its pools: one for LISTEN and one for NOTIFY.
const WAKING: usize = 2;
/// Clock difference from which a warning is given.
const CLOCK_SKEW_GRACE: Duration = Duration::from_secs(1);
/// Credentials that a finding names.
const NAMED: usize = 10;
const MAX_KEY_BYTES: u64 = 1 << 20;

/// Checks everything, prints what was found, and fails if a node would.
pub async fn run(loaded: Result<Config, ConfigError>, json: bool) -> anyhow::Result<()> {
    let mut report = FindingReport::default();
    Box::pin(examine(loaded, &mut report)).await;
    let (failed, count) = (report.failed(), report.count());
    if json {
        print_json(&report.json())?;
    } else {
        for line in report.lines() {
            print_line(&line)?;
        }
    }
    anyhow::ensure!(failed == 0, "{failed} of {count} checks failed");
    Ok(())
}

async fn examine(loaded: Result<Config, ConfigError>, report: &mut FindingReport) {
    const REFERENCE: &str = "docs/configuration.md describes every key";
    let valid = loaded.and_then(|config| config.validate().map(|()| config));
    let config = match valid {
        Ok(config) => config,
        Err(error) => return report.fail("configuration", error.to_string(), REFERENCE),
    };
    report.ok("configuration", "every key is known and valid");
    let unknown = Config::unknown_variables();
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        let message = format!("no setting has this name, so it is ignored: {names}");
        report.warn("environment", message, REFERENCE);
    }
    if config.tls.mode == TlsMode::On {
        match TlsListener::check(&config.tls) {
            Ok(()) => report.ok("tls", "the certificate and its key are usable"),
            Err(error) => report.fail("tls", error.to_string(), "correct or replace the file"),
        }
    }
    if config.auth.jwt() && config.auth.jwt_secret.is_empty() {
        issuer_keys(&config.auth, report).await;
    }
    if config.page.oidc.is_enabled() {
        sign_in::check(&config.page.oidc, report).await;
    }
    if config.security.cluster_secret.is_empty() {
        report.warn(
            "cluster secret",
            "not set, so a second node would refuse to start",
            "set security.cluster_secret or security.cluster_secret_file, the same on every node",
        );
    }
    let reached = async {
        let store = open_store(&config)?;
        let server = store.database.server().await?;
        anyhow::Ok((store, server))
    };
    match reached.await {
        Ok((store, server)) => database(&config, &store, server, report).await,
        // The message says what to do.
        Err(error) => report.add("database", Failed, format!("{error:#}"), None),
    }
}

async fn issuer_keys(auth: &Auth, report: &mut FindingReport) {
    let found = match &auth.jwt_jwks_file {
        Some(path) => std::fs::File::open(path)
            .and_then(|file| {
                let mut bytes = Vec::new();
                file.take(MAX_KEY_BYTES).read_to_end(&mut bytes)?;
                Ok(bytes)
            })
            .map_err(|error| format!("cannot read {}: {error}", path.display())),
        None => fetch(&auth.jwt_jwks_url).await,
    };
    match found.map(|bytes| KeySet::parse(&bytes)) {
        Ok(Some(keys)) if !keys.is_empty() => {
            report.ok("issuer's keys", format!("{} keys", keys.len()));
        }
        Ok(_) => report.fail(
            "issuer's keys",
            "not a JWK set with a key of a supported type",
            "check auth.jwt_jwks_file or auth.jwt_jwks_url",
        ),
        // A node starts without them and retries.
        Err(error) => report.warn(
            "issuer's keys",
            error,
            "until they can be read, JWTs get 503; check auth.jwt_jwks_file or auth.jwt_jwks_url",
        ),
    }
}

async fn database(config: &Config, store: &Store, server: ServerFacts, report: &mut FindingReport) {
    let version = format!(
        "PostgreSQL {}.{}, {}",
        server.version / 10_000,
        server.version % 10_000,
        server.tls.as_deref().unwrap_or("not encrypted")
    );
    if server.version < OLDEST {
        let remedy = "upgrade to version 15 or later";
        return report.fail("database", version, remedy);
    }
    if server.writable {
        report.ok("database", version);
    } else {
        report.fail(
            "database",
            format!("{version}, read-only"),
            "point database.url to the primary, or unset default_transaction_read_only",
        );
    }
    schema(config, store, report).await;
    clock(config, &server, report);
    connections(config, &server, report);
    match config.wake.mode {
        WakeMode::Notify => notifications(config, store, report).await,
        WakeMode::Poll => {}
    }
}

async fn schema(config: &Config, store: &Store, report: &mut FindingReport) {
    const UNREAD: &str =
        "check that the role of database.url may read the tables: deploy/roles.sql grants it";
    let found = match store.database.schema().await {
        Ok(SchemaState::Behind) => store.database.missing_migrations().await.map(|missing| {
            let message = format!("migrations are missing: {}", missing.join(", "));
            report.fail("schema", message, "run `countersign migrate`");
        }),
        Ok(SchemaState::Ahead) => {
            let message = "newer than this binary";
            report.fail("schema", message, "deploy the matching version");
            Ok(())
        }
        Ok(SchemaState::Known) => {
            report.ok("schema", "every migration is applied");
            match store.database.row_security().await {
                Ok(RowSecurity::Fits) => report.ok("row security", "fits the role that connects"),
                Ok(RowSecurity::Missing) => {
                    report.add("row security", Failed, RowSecurity::MISSING, None);
                }
                Ok(RowSecurity::Idle) => {
                    report.add("row security", Warning, RowSecurity::IDLE, None);
                }
                Err(error) => report.fail("row security", error.to_string(), UNREAD),
            }
            match store.database.retention_floors().await {
                Ok(floors) => retention(config, floors, report),
                Err(error) => report.fail("retention", error.to_string(), UNREAD),
            }
            credentials(store, report).await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = found {
        report.fail("schema", error.to_string(), UNREAD);
    }
}

fn retention(config: &Config, floors: RetentionFloors, report: &mut FindingReport) {
    let retention = &config.retention;
    if retention.exchange_seconds >= floors.exchanges && retention.audit_seconds >= floors.audit {
        return report.ok("retention", "as configured");
    }
    let message = format!(
        "the database keeps exchanges for at least {} s and the audit for {} s, which is longer than configured",
        floors.exchanges, floors.audit
    );
    let remedy = "run deploy/roles.sql with keep_history and keep_audit, or raise retention.exchange_seconds \
         and retention.audit_seconds";
    report.warn("retention", message, remedy);
}

/// Credentials for any id are for trusted backends; those that an earlier version made may be so by
/// mistake.
async fn credentials(store: &Store, report: &mut FindingReport) -> Result<(), StoreError> {
    const REMEDY: &str =
        "unless a trusted backend needs them, revoke each and create one with --bound-id";
    let unbound = store.credentials.unbound_credentials().await?;
    if unbound.is_empty() {
        report.ok("credentials", "each is bound to one id");
        return Ok(());
    }
    let named = unbound.iter().take(NAMED).map(CredentialId::as_str);
    let mut names = named.collect::<Vec<_>>().join(", ");
    if unbound.len() > NAMED {
        names.push_str(", …");
    }
    let message = format!("{} can act as any id of their role: {names}", unbound.len());
    report.warn("credentials", message, REMEDY);
    Ok(())
}

fn clock(config: &Config, server: &ServerFacts, report: &mut FindingReport) {
    const REMEDY: &str = "synchronize both machines with a time server";
    let apart = server.ahead.unsigned_abs();
    let side = if server.ahead.is_negative() {
        "behind"
    } else {
        "ahead of"
    };
    let seconds = apart.as_secs_f64();
    let message = format!("the database's clock is {seconds:.3} s {side} this machine's");
    if apart > Duration::from_secs(config.limits.clock_skew_seconds) {
        report.fail("clock", message, REMEDY);
    } else if apart > CLOCK_SKEW_GRACE {
        report.warn("clock", message, REMEDY);
    } else {
        report.ok("clock", message);
    }
}

fn connections(config: &Config, server: &ServerFacts, report: &mut FindingReport) {
    const REMEDY: &str = "raise max_connections (or the limit of the role or the database), or lower database.pool_size";
    let pools = config.database.pool_size + config.database.background_pool_size;
    let waking = match config.wake.mode {
        WakeMode::Notify => WAKING,
        WakeMode::Poll => 0,
    };
    let given = usize::try_from(server.connections).unwrap_or_default();
    let nodes = given / (pools + waking);
    let message = format!(
        "a node opens up to {}, the database allows {given}: enough for {nodes} nodes",
        pools + waking
    );
    match nodes {
        0 => report.fail("connections", message, REMEDY),
        1 => report.warn("connections", message, REMEDY),
        _ => report.ok("connections", message),
    }
}

async fn notifications(config: &Config, store: &Store, report: &mut FindingReport) {
    const REMEDY: &str = "set database.listen_url to a URL of the same database without a pooler, or wake.mode = \"poll\"";
    let database = &store.database;
    match database.receives_notifications(&config.database).await {
        Ok(true) => report.ok("notifications", "arrive"),
        Ok(false) => report.fail(
            "notifications",
            "a test notification did not arrive",
            REMEDY,
        ),
        Err(error) => report.fail("notifications", error.to_string(), REMEDY),
    }
}
