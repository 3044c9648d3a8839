//! `[telemetry]`: metrics and traces.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::require::require;
use super::secret::Secret;

section! {
    Telemetry {
        /// The address that serves `GET /metrics`, without credentials; none if empty.
        metrics_listen: String = "127.0.0.1:9464".into(),
        /// Whether a free port is used if that one is taken, as `countersign dev` wants.
        #[serde(skip)]
        takes_other_port: bool = false,
        /// Where metrics and spans are sent by OTLP over HTTP, such as `http://collector:4318`;
        /// nowhere if empty.
        otlp_endpoint: String = String::new(),
        /// Headers of these exports, as `name=value,name=value`, values percent-encoded.
        otlp_headers: Secret = Secret::default(),
        /// A file that holds `otlp_headers`; read where it is not set itself.
        otlp_headers_file: Option<PathBuf> = None,
        export_seconds: u64 = 15,
        /// The share of requests that is traced, from 0 to 1; a request whose caller traces it
        /// always is.
        sample_ratio: f64 = 1.0,
        /// The `service.name` of exported traces and metrics.
        service_name: String = "countersign".into(),
    }
}

impl Telemetry {
    pub fn metrics_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        if self.metrics_listen.is_empty() {
            return Ok(None);
        }
        let address = self.metrics_listen.parse();
        let problem = "must be an address and a port, such as 127.0.0.1:9464, or empty";
        address
            .map(Some)
            .map_err(|_| ConfigError::invalid("telemetry.metrics_listen", problem))
    }

    pub fn exports(&self) -> bool {
        !self.otlp_endpoint.is_empty()
    }

    /// The URLs for spans and for metrics, if they are exported.
    pub fn otlp_urls(&self) -> Result<Option<(Uri, Uri)>, ConfigError> {
        if !self.exports() {
            return Ok(None);
        }
        let problem = "must be the URL of a collector, such as http://127.0.0.1:4318, or empty";
        let url = |path: &str| {
            let text = format!("{}{path}", self.otlp_endpoint.trim_end_matches('/'));
            let url: Option<Uri> = text.parse().ok();
            let url = url.filter(|url| matches!(url.scheme_str(), Some("http" | "https")));
            url.filter(|url| url.host().is_some())
                .ok_or_else(|| ConfigError::invalid("telemetry.otlp_endpoint", problem))
        };
        Ok(Some((url("/v1/traces")?, url("/v1/metrics")?)))
    }

    pub fn otlp_header_map(&self) -> Result<HeaderMap, ConfigError> {
        let problem = "must be name=value pairs with commas between them, values percent-encoded";
        let invalid = || ConfigError::invalid("telemetry.otlp_headers", problem);
        let mut headers = HeaderMap::new();
        let pairs = self.otlp_headers.expose().split(',').map(str::trim);
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let header = pair.split_once('=').and_then(|(name, value)| {
                let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
                let mut value = HeaderValue::from_str(&value).ok()?;
                value.set_sensitive(true);
                Some((name.trim().parse::<HeaderName>().ok()?, value))
            });
            let (name, value) = header.ok_or_else(invalid)?;
            headers.append(name, value);
        }
        Ok(headers)
    }

    pub fn validate(&self) -> Result<(), ConfigError> {
        self.metrics_address()?;
        self.otlp_urls()?;
        self.otlp_header_map()?;
        require(
            (0.0..=1.0).contains(&self.sample_ratio),
            "telemetry.sample_ratio",
            "must lie between 0 and 1",
        )?;
        require(
            self.export_seconds > 0,
            "telemetry.export_seconds",
            "must be at least 1",
        )
    }
}
