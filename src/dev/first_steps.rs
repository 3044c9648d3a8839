//! Prepares the first steps of a new user: an invitation and a profile.

use super::data_dir::DataDir;
use super::demo::DemoAccounts;
use super::lan::LanService;
use super::nodes::DevNodes;
use super::profile::{self, DemoProfile};
use countersign::client::profile::{GatewayProfile, SecretText};
use countersign::gateway::identity::administration::AdminService;

/// The links and names that a first user needs.
pub struct FirstSteps {
    pub invitation: String,
    pub has_joined: bool,
    pub profile: DemoProfile,
    /// Why the profile could not be written.
    pub problem: Option<String>,
}

impl FirstSteps {
    pub async fn prepare(
        administration: &AdminService,
        data_dir: &DataDir,
        demo: &DemoAccounts,
        nodes: &DevNodes,
        lan: Option<&LanService>,
    ) -> anyhow::Result<Self> {
        let gateway = GatewayProfile {
            urls: match lan {
                Some(lan) => vec![lan.url()],
                None => nodes.urls.clone(),
            },
            ca: lan.map(|lan| lan.authority.file.clone()),
            allow_http: false,
            tenant: demo.tenant_id.clone(),
            api_key: SecretText::new(demo.bound_enforcer.as_str()),
        };
        let page = gateway.urls.first().map_or("", String::as_str);
        let written = profile::write(data_dir, &gateway);
        Ok(Self {
            invitation: demo.invite(administration, page).await?,
            has_joined: demo.has_joined(administration).await?,
            profile: written.as_ref().cloned().unwrap_or_default(),
            problem: written.err().map(|error| error.to_string()),
        })
    }
}
