//! Reading the configuration, and checking what types cannot express.

use std::collections::BTreeMap;
use std::path::Path;

use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::Dict;

use super::Config;
use super::environment::{ENV_PREFIX, variable, variables_without_section};
use super::error::ConfigError;
use super::require::{require, require_length};

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
            tls,
            auth,
            log,
            telemetry,
            ..
        } = self;
        log.key.read("log.key_file", log.key_file.as_deref())?;
        database
            .url
            .read("database.url_file", database.url_file.as_deref())?;
        let file = database.listen_url_file.as_deref();
        database.listen_url.read("database.listen_url_file", file)?;
        let file = platform.operator_key_file.as_deref();
        platform
            .operator_key
            .read("platform.operator_key_file", file)?;
        let file = security.cluster_secret_file.as_deref();
        security
            .cluster_secret
            .read("security.cluster_secret_file", file)?;
        let file = tls.proxy_secret_file.as_deref();
        tls.proxy_secret.read("tls.proxy_secret_file", file)?;
        auth.jwt_secret
            .read("auth.jwt_secret_file", auth.jwt_secret_file.as_deref())?;
        let file = auth.introspection_client_secret_file.as_deref();
        auth.introspection_client_secret
            .read("auth.introspection_client_secret_file", file)?;
        let file = telemetry.otlp_headers_file.as_deref();
        telemetry
            .otlp_headers
            .read("telemetry.otlp_headers_file", file)
    }

    /// Checks what types cannot express.
    pub fn validate(&self) -> Result<(), ConfigError> {
        require(
            !self.database.url.is_empty(),
            "database.url",
            "is not set; use COUNTERSIGN_DATABASE__URL=postgres://user:password@host/database, --database-url, \
             or `countersign dev` for a private PostgreSQL",
        )?;
        self.tls.validate(self.server.listen)?;
        let name = &self.protocol.name;
        require(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()),
            "protocol.name",
            "must be letters and digits",
        )?;
        let limits = &self.limits;
        if limits.body_memory_bytes < limits.largest_answer() {
            let problem = format!(
                "must be at least {}: limits.page_bytes, limits.artifact_bytes and 64 KiB together, \
                 or one snapshot",
                limits.largest_answer()
            );
            return Err(ConfigError::invalid("limits.body_memory_bytes", problem));
        }
        require(limits.page_max > 0, "limits.page_max", "must be at least 1")?;
        require(
            limits.wait_max_seconds > 0,
            "limits.wait_max_seconds",
            "must be at least 1",
        )?;
        let log = &self.log;
        require(
            log.key.is_empty() || log.signing_seed().is_some(),
            "log.key_file",
            "must name a file with 32 random bytes in base64: openssl rand -base64 32",
        )?;
        let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b'+';
        require(
            log.key.is_empty() || !log.origin.is_empty() && log.origin.bytes().all(is_name),
            "log.origin",
            "must be a name without spaces and +, such as approve.example.com",
        )?;
        let database = &self.database;
        require(
            database.pool_size > 0,
            "database.pool_size",
            "must be at least 1",
        )?;
        // PostgreSQL takes 0 for no limit, but a node that waits without one stands still when the
        // server falls silent.
        require(
            database.statement_timeout_ms > 0,
            "database.statement_timeout_ms",
            "must be at least 1",
        )?;
        // With 0, sqlx would still prepare named statements and never close them.
        require(
            database.statement_cache > 0,
            "database.statement_cache",
            "must be at least 1",
        )?;
        require(
            !database.row_security || database.session_settings,
            "database.row_security",
            "needs its own sessions, which PgBouncer in transaction mode does not provide: connect directly or in \
             session mode with database.session_settings = true, or as the tables' owner without row_security",
        )?;
        require(
            self.retention.nonce_seconds >= self.artifacts.max_lifetime_seconds,
            "retention.nonce_seconds",
            "must be at least artifacts.max_lifetime_seconds: until then a replayed decision may find its exchange",
        )?;
        require_length("security.cluster_secret", &self.security.cluster_secret)?;
        require(
            (1..=24 * 3_600).contains(&self.pairing.code_seconds),
            "pairing.code_seconds",
            "must lie between 1 and 86400",
        )?;
        require(
            self.pairing.guesses_per_principal > 0 && self.pairing.guesses_per_tenant > 0,
            "pairing.guesses_per_principal",
            "this and pairing.guesses_per_tenant must be at least 1",
        )?;
        require_length("platform.operator_key", &self.platform.operator_key)?;
        self.page.validate()?;
        self.notifications.validate()?;
        self.telemetry.validate()?;
        self.auth.validate()?;
        let accepts_tokens = self.auth.jwt() || self.auth.introspection();
        self.page.oidc.validate(accepts_tokens)
    }
}
