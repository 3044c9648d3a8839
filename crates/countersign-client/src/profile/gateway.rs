//! The gateway that a role of a profile uses.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::records::read_id;
use super::secret::SecretText;
use crate::error::{ProfileError, Result};
use crate::gateway::{GatewayClient, GatewayLocation};
use countersign_protocol::id::TenantId;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayProfile {
    /// The nodes, or a load balancer.
    pub urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_http: bool,
    pub tenant: String,
    pub api_key: SecretText,
}

impl GatewayProfile {
    pub fn client(&self) -> Result<GatewayClient> {
        let location = GatewayLocation {
            urls: &self.urls,
            ca: self.ca.as_deref(),
            allow_http: self.allow_http,
        };
        GatewayClient::new(&location, Some(self.api_key.expose()))
    }

    pub fn tenant(&self) -> Result<TenantId, ProfileError> {
        read_id("tenant", &self.tenant)
    }
}
