//! The user's profile, with the demo's enforcer in it, so that `countersign run` works at once.

use countersign::client::profile::{
    EnforcerProfile, GatewayProfile, Profile, ProfileError, ProfileFile, SecretText,
};
use countersign::client::random;
use countersign::e2e::EnforcerKeys;
use countersign::protocol::id::{EnforcerId, TextId as _};

use super::demo::{DemoAccounts, ENFORCER};

/// Used if the default profile already has an enforcer that is not the demo's.
const OTHER_NAME: &str = "dev";

/// Writes the enforcer into the default profile, or into one of its own, whose name is returned.
pub fn write(demo: &DemoAccounts, urls: &[String]) -> anyhow::Result<Option<&'static str>> {
    for name in [None, Some(OTHER_NAME)] {
        let file = ProfileFile::named(name.unwrap_or("default"))?;
        if file.update(|profile| put(profile, demo, urls))? {
            return Ok(name);
        }
    }
    anyhow::bail!("the profile `{OTHER_NAME}` has another enforcer")
}

/// False if there is an enforcer that is not the demo's.
fn put(profile: &mut Profile, demo: &DemoAccounts, urls: &[String]) -> anyhow::Result<bool> {
    let gateway = GatewayProfile {
        urls: urls.to_vec(),
        ca: None,
        allow_http: false,
        tenant: demo.tenant_id.clone(),
        api_key: SecretText::new(demo.bound_enforcer.as_str()),
    };
    match &mut profile.enforcer {
        Some(other) if other.id != ENFORCER => return Ok(false),
        // From an earlier run on the same data: its pairings go on.
        Some(own) if own.gateway.tenant == demo.tenant_id => own.gateway = gateway,
        slot => {
            let keys = EnforcerKeys::generate(&mut random)?;
            let id = EnforcerId::parse(ENFORCER).ok_or(ProfileError::Name)?;
            *slot = Some(EnforcerProfile::new(&id, &keys, gateway));
        }
    }
    Ok(true)
}
