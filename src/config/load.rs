//! Reading the configuration, and checking what types cannot express.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::error::Kind;
use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::Dict;
use figment::{Figment, Source};

use super::Config;

const ENV_PREFIX: &str = "COUNTERSIGN_";

/// Variables with our prefix that are not keys: the command line and `countersign dev` read them.
const OTHER_VARIABLES: [&str; 2] = ["config_file", "postgres_bin"];

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read, or a value has the wrong type.
    #[error(transparent)]
    Unreadable(Box<figment::Error>),
    #[error("{place} sets {key}, which does not exist; did you mean {nearest}?")]
    UnknownKey {
        /// A file or a variable.
        place: String,
        key: String,
        nearest: String,
    },
    /// A file that a key names cannot be read.
    #[error("{key}: cannot read {}: {error}", path.display())]
    File {
        key: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{key}: {problem}")]
    Invalid { key: &'static str, problem: String },
}

impl From<figment::Error> for ConfigError {
    /// Names the nearest key where one is unknown.
    fn from(error: figment::Error) -> Self {
        let Kind::UnknownField(name, known) = &error.kind else {
            return Self::Unreadable(Box::new(error));
        };
        let likeness = |key: &&&str| strsim::jaro_winkler(name, key);
        let nearest = known
            .iter()
            .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
        let mut near = error.path.clone();
        if let (Some(last), Some(nearest)) = (near.last_mut(), nearest) {
            (*nearest).clone_into(last);
        }
        let source = error
            .metadata
            .as_ref()
            .and_then(|data| data.source.as_ref());
        let (place, nearest) = match source {
            Some(Source::File(file)) => (file.display().to_string(), near.join(".")),
            _ => (variable(&error.path), variable(&near)),
        };
        Self::UnknownKey {
            place,
            key: error.path.join("."),
            nearest,
        }
    }
}

/// The variable that sets a key, or `COUNTERSIGN_SECTION__…` for a whole section.
fn variable(path: &[String]) -> String {
    let rest = if path.len() == 1 { "__…" } else { "" };
    let name = path.join("__").to_uppercase();
    format!("{ENV_PREFIX}{name}{rest}")
}

/// The variables with our prefix that name no section, in lower case and without the prefix. They may belong to a script
/// around the gateway, so they are no error.
fn variables_without_section() -> Vec<String> {
    let variables = Env::prefixed(ENV_PREFIX).ignore(&OTHER_VARIABLES);
    let variables = variables.filter(|name| !name.as_str().contains("__"));
    variables.iter().map(|(name, _)| name.to_string()).collect()
}

/// Rejects `COUNTERSIGN_DATABASE_URL`, which should be `COUNTERSIGN_DATABASE__URL`.
fn reject_single_underscores(sections: &BTreeMap<String, Dict>) -> Result<(), ConfigError> {
    for name in variables_without_section() {
        for (section, keys) in sections {
            let rest = name.strip_prefix(section);
            if let Some(key) = rest.and_then(|rest| rest.strip_prefix('_'))
                && keys.contains_key(key)
            {
                return Err(ConfigError::UnknownKey {
                    place: format!("{ENV_PREFIX}{}", name.to_uppercase()),
                    nearest: variable(&[section.clone(), key.to_owned()]),
                    key: name,
                });
            }
        }
    }
    Ok(())
}

impl Config {
    /// Reads the configuration: defaults, then `file`, then the environment.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let mut figment = Figment::from(Serialized::defaults(Self::default()));
        reject_single_underscores(&figment.extract()?)?;
        if let Some(file) = file {
            figment = figment.merge(Toml::file_exact(file));
        }
        let environment = Env::prefixed(ENV_PREFIX).filter(|name| name.as_str().contains("__"));
        let mut config: Self = figment.merge(environment.split("__")).extract()?;
        config.read_secret_files()?;
        Ok(config)
    }

    /// Environment variables with our prefix that set nothing.
    pub fn unknown_variables() -> Vec<String> {
        variables_without_section()
            .iter()
            .map(|name| format!("{ENV_PREFIX}{}", name.to_uppercase()))
            .collect()
    }

    fn read_secret_files(&mut self) -> Result<(), ConfigError> {
        let Self {
            database,
            platform,
            security,
            auth,
            telemetry,
            ..
        } = self;
        for (key, file, secret) in [
            ("database.url_file", &database.url_file, &mut database.url),
            (
                "database.listen_url_file",
                &database.listen_url_file,
                &mut database.listen_url,
            ),
            (
                "platform.operator_key_file",
                &platform.operator_key_file,
                &mut platform.operator_key,
            ),
            (
                "security.cluster_secret_file",
                &security.cluster_secret_file,
                &mut security.cluster_secret,
            ),
            (
                "auth.jwt_secret_file",
                &auth.jwt_secret_file,
                &mut auth.jwt_secret,
            ),
            (
                "auth.introspection_client_secret_file",
                &auth.introspection_client_secret_file,
                &mut auth.introspection_client_secret,
            ),
            (
                "telemetry.otlp_headers_file",
                &telemetry.otlp_headers_file,
                &mut telemetry.otlp_headers,
            ),
        ] {
            // An empty path unsets what an earlier layer set.
            if let Some(file) = file.as_deref().filter(|file| !file.as_os_str().is_empty()) {
                secret.read(key, file)?;
            }
        }
        Ok(())
    }

    /// Checks what types cannot express.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let invalid = |key, problem: &str| {
            Err(ConfigError::Invalid {
                key,
                problem: problem.to_owned(),
            })
        };
        if self.database.url.is_empty() {
            return invalid(
                "database.url",
                "is not set; use COUNTERSIGN_DATABASE__URL=postgres://user:password@host/database, --database-url, \
                 or `countersign dev` for a private PostgreSQL",
            );
        }
        self.tls.validate(self.server.listen)?;
        let name = &self.protocol.name;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return invalid("protocol.name", "must be letters and digits");
        }
        let largest = self.limits.artifact_bytes.max(self.limits.snapshot_bytes);
        if self.limits.body_memory_bytes < largest + self.limits.envelope_bytes {
            return invalid(
                "limits.body_memory_bytes",
                "must hold at least one body of the largest kind",
            );
        }
        if self.limits.page_max == 0
            || self.limits.page_default == 0
            || self.limits.page_default > self.limits.page_max
        {
            return invalid(
                "limits.page_default",
                "must lie between 1 and limits.page_max",
            );
        }
        if self.limits.wait_default_seconds == 0
            || self.limits.wait_default_seconds > self.limits.wait_max_seconds
        {
            return invalid(
                "limits.wait_default_seconds",
                "must lie between 1 and limits.wait_max_seconds",
            );
        }
        if self.wake.poll_ms == 0 || self.wake.canary_ms == 0 {
            return invalid("wake.poll_ms", "this and wake.canary_ms must be at least 1");
        }
        if self.database.pool_size == 0 || self.database.background_pool_size == 0 {
            return invalid(
                "database.pool_size",
                "this and database.background_pool_size must be at least 1",
            );
        }
        // With 0, sqlx would still prepare named statements and never close them.
        if self.database.statement_cache == 0 {
            return invalid("database.statement_cache", "must be at least 1");
        }
        if self.database.row_security && !self.database.session_settings {
            return invalid(
                "database.row_security",
                "needs its own sessions, which PgBouncer in transaction mode does not provide: connect directly or in \
                 session mode with database.session_settings = true, or as the tables' owner without row_security",
            );
        }
        let secret = &self.security.cluster_secret;
        if !secret.is_empty() && secret.expose().len() < 32 {
            return invalid(
                "security.cluster_secret",
                "must have at least 32 characters",
            );
        }
        if !(1..=24 * 3_600).contains(&self.pairing.code_seconds) {
            return invalid("pairing.code_seconds", "must lie between 1 and 86400");
        }
        if self.pairing.guesses_per_principal == 0 || self.pairing.guesses_per_tenant == 0 {
            return invalid(
                "pairing.guesses_per_principal",
                "this and pairing.guesses_per_tenant must be at least 1",
            );
        }
        if self.presence.write_seconds == 0 || self.presence.write_seconds > 30 {
            return invalid("presence.write_seconds", "must lie between 1 and 30");
        }
        let key = &self.platform.operator_key;
        if !key.is_empty() && key.expose().len() < 32 {
            return invalid("platform.operator_key", "must have at least 32 characters");
        }
        self.telemetry.validate()?;
        self.auth.validate()
    }
}
