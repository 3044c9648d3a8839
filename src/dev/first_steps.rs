//! Prepares the first steps of a new user: an invitation and a profile.

use super::demo::DemoAccounts;
use super::nodes::DevNodes;
use super::profile;
use countersign::gateway::identity::administration::AdminService;

/// The links and names that a first user needs.
pub struct FirstSteps {
    pub invitation: String,
    /// Whether the invitation can be opened in a browser.
    pub has_page: bool,
    pub has_joined: bool,
    /// The profile with the enforcer, if it is not the default one.
    pub profile: Option<&'static str>,
    /// Why the profile could not be written.
    pub problem: Option<String>,
}

impl FirstSteps {
    pub async fn prepare(
        administration: &AdminService,
        demo: &DemoAccounts,
        nodes: &DevNodes,
        has_page: bool,
    ) -> anyhow::Result<Self> {
        let page = nodes.urls.first().map_or("", String::as_str);
        let written = profile::write(demo, &nodes.urls);
        Ok(Self {
            invitation: demo.invite(administration, page).await?,
            has_page,
            has_joined: demo.has_joined(administration).await?,
            profile: written.as_ref().copied().unwrap_or_default(),
            problem: written.err().map(|error| error.to_string()),
        })
    }
}
