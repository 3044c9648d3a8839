//! A profile with the demo's enforcer in it, so that `countersign run` works at once. Only the demo
//! that a user keeps is put into the user's own profiles. Any other run would replace its enforcer,
//! and approvers would be warned of a key that has changed.

use std::path::PathBuf;

use countersign::client::profile::{
    EnforcerProfile, GatewayProfile, Profile, ProfileError, ProfileFile,
};
use countersign::client::random;
use countersign::e2e::EnforcerKeys;
use countersign::protocol::id::{EnforcerId, TextId as _};

use super::data_dir::DataDir;
use super::demo::ENFORCER;

/// Used if the default profile already has an enforcer that is not the demo's.
const OTHER_NAME: &str = "dev";

/// Where the profile is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DemoProfile {
    /// Its name, if it is not the default one.
    pub name: Option<&'static str>,
    /// The directory of the profiles, if it is not the user's.
    pub directory: Option<PathBuf>,
}

pub fn write(data_dir: &DataDir, gateway: &GatewayProfile) -> anyhow::Result<DemoProfile> {
    if !data_dir.is_usual {
        let directory = data_dir.profiles();
        ProfileFile::at(directory.join("default.toml")).update(|profile| put(profile, gateway))?;
        return Ok(DemoProfile {
            name: None,
            directory: Some(directory),
        });
    }
    for name in [None, Some(OTHER_NAME)] {
        let file = ProfileFile::named(name.unwrap_or("default"))?;
        if file.update(|profile| put(profile, gateway))? {
            return Ok(DemoProfile {
                name,
                directory: None,
            });
        }
    }
    anyhow::bail!("the profile `{OTHER_NAME}` has another enforcer")
}

/// False if there is an enforcer that is not the demo's.
fn put(profile: &mut Profile, gateway: &GatewayProfile) -> anyhow::Result<bool> {
    match &mut profile.enforcer {
        Some(other) if other.id != ENFORCER => return Ok(false),
        // From an earlier run on the same data: its pairings go on.
        Some(own) if own.gateway.tenant == gateway.tenant => own.gateway = gateway.clone(),
        slot => {
            let keys = EnforcerKeys::generate(&mut random)?;
            let id = EnforcerId::parse(ENFORCER).ok_or(ProfileError::Name)?;
            *slot = Some(EnforcerProfile::new(&id, &keys, gateway.clone()));
        }
    }
    // A person who joined in this terminal follows to the new address.
    if let Some(approver) = &mut profile.approver
        && approver.gateway.tenant == gateway.tenant
    {
        approver.gateway.urls.clone_from(&gateway.urls);
        approver.gateway.ca.clone_from(&gateway.ca);
    }
    Ok(true)
}
