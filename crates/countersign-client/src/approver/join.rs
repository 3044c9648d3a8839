//! Joining with an invitation: the code becomes a credential, keys are created, and both are stored
//! in the profile at once. A device of an approver then comes into force, at once if it is the
//! first.

use std::time::Duration;

use serde_json::json;

use super::devices::{DeviceStanding, KnownDevices};
use super::role::Approver;
use crate::access::call_deadline;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, GatewayClient, GatewayLocation};
use crate::profile::{
    ApproverProfile, EnforcerProfile, GatewayProfile, Profile, ProfileFile, SecretText,
};
use crate::random::random;
use crate::retry::{RetryPause, poll};
use countersign_e2e::{
    DeviceKeys, DeviceLink, DeviceName, DeviceStatement, EndorsementRequest, EnforcerKeys,
    SignedStatement, StatementChange,
};
use countersign_protocol::clock::Clock;
use countersign_protocol::id::{ApproverId, EnforcerId, TenantId, TextId as _};

const MARK: &str = "#/join/";
const POLL_PAUSE: RetryPause = RetryPause::constant(Duration::from_secs(1));
/// More than this many profiles or devices of a name are not looked for.
const MAX_NUMBER: u32 = 99;
/// A name has at most 64 characters.
const MAX_NUMBERED_CHARS: usize = 60;

/// An invitation of an administrator, as a link or only the code at its end, or the link of a
/// device.
pub struct InvitationLink {
    code: SecretText,
    page: Option<String>,
    device: Option<DeviceLink>,
}

impl InvitationLink {
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let device = DeviceLink::parse(text)?;
        let (page, code) = match text.split_once(MARK) {
            Some((page, code)) => (Some(page.trim_end_matches('/')), code),
            None => (None, text),
        };
        let code = device.as_ref().map_or(code, |link| link.code().as_str());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if code.len() < 16 || code.len() > 256 || !code.chars().all(plain) {
            return Err(ClientError::Invitation);
        }
        Ok(Self {
            code: SecretText::new(code),
            page: page.filter(|page| !page.is_empty()).map(str::to_owned),
            device,
        })
    }

    /// The address of the page. It is the gateway's, unless the page is hosted elsewhere.
    pub fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// The link, if a device of the same approver has made it.
    pub fn device(&self) -> Option<&DeviceLink> {
        self.device.as_ref()
    }
}

/// The new role, and its profile.
pub enum JoinOutcome {
    Approver(Box<Approver>),
    Enforcer(EnforcerId, ProfileFile),
    /// With an API key that belongs in no profile.
    Administrator(SecretText),
}

/// The answer of `/v1/join`.
struct JoinCredential {
    tenant: TenantId,
    role: String,
    bound_id: String,
    api_key: SecretText,
    invitation: Option<String>,
}

/// Joins, and stores credential and keys in the profile. Unless `replace`, a role that the profile
/// has already is not overwritten: the new one goes into a profile beside it, since the code is
/// used up.
pub async fn join(
    file: &ProfileFile,
    replace: bool,
    clock: &Clock,
    invitation: &InvitationLink,
    location: &GatewayLocation<'_>,
    name: &DeviceName,
) -> Result<JoinOutcome> {
    let present = file.rehearse()?;
    if !replace && present.enforcer.is_some() && present.approver.is_some() {
        return Err(ClientError::RolesTaken);
    }
    let client = GatewayClient::new(location, None)?;
    let device = DeviceKeys::generate(&mut random)?;
    let enforcer = EnforcerKeys::generate(&mut random)?;
    let credential = redeem(&client, invitation).await?;
    if credential.role == "admin" {
        return Ok(JoinOutcome::Administrator(credential.api_key));
    }
    let gateway = GatewayProfile {
        urls: location.urls.to_vec(),
        ca: location.ca.map(std::path::Path::to_owned),
        allow_http: location.allow_http,
        tenant: credential.tenant.to_string(),
        api_key: credential.api_key,
    };
    let expected = || ClientError::answer("an id");
    match credential.role.as_str() {
        "approver" => {
            let id = ApproverId::parse(&credential.bound_id).ok_or_else(expected)?;
            let joined = ApproverProfile::new(&id, &device, name, gateway);
            let file = keep(file, replace, |profile| {
                let mut joined = joined.clone();
                if let Some(former) = &profile.approver
                    && former.id == joined.id
                    && former.gateway.tenant == joined.gateway.tenant
                {
                    // This person authenticated their keys, with the former keys of this device.
                    joined.enforcers.clone_from(&former.enforcers);
                    joined.unpaired.clone_from(&former.unpaired);
                    joined.revoked.clone_from(&former.revoked);
                }
                profile.approver.replace(joined).is_some()
            })?;
            let mut approver = Approver::open(&file, clock)?;
            // The profile is complete without it.
            if approver.choose_free_name().await.unwrap_or(false) {
                approver = Approver::open(&file, clock)?;
            }
            approver.invitation = credential.invitation;
            Ok(JoinOutcome::Approver(Box::new(approver)))
        }
        "enforcer" => {
            let id = EnforcerId::parse(&credential.bound_id).ok_or_else(expected)?;
            let joined = EnforcerProfile::new(&id, &enforcer, gateway);
            let file = keep(file, replace, |profile| {
                profile.enforcer.replace(joined.clone()).is_some()
            })?;
            Ok(JoinOutcome::Enforcer(id, file))
        }
        _ => {
            let expected = "an invitation of an approver or enforcer";
            Err(ClientError::answer(expected))
        }
    }
}

/// Writes the role into the profile, or into the first one beside it that has no such role. `put`
/// says whether it replaced one.
fn keep(
    file: &ProfileFile,
    replace: bool,
    put: impl Fn(&mut Profile) -> bool,
) -> Result<ProfileFile> {
    let mut place = file.clone();
    for number in 2..=MAX_NUMBER {
        let kept = place.update(|profile| {
            if put(profile) && !replace {
                return Err(ClientError::RolesTaken);
            }
            Ok(())
        });
        match kept {
            Err(ClientError::RolesTaken) => place = file.numbered(number),
            kept => return kept.map(|()| place),
        }
    }
    Err(ClientError::RolesTaken)
}

async fn redeem(client: &GatewayClient, invitation: &InvitationLink) -> Result<JoinCredential> {
    let body = json!({ "code": invitation.code.expose() }).to_string();
    // A code works once: after a lost answer it could be used up.
    let call = GatewayCall::post("/v1/join", body).once();
    let answer = client.expect(&call, &[201], call_deadline()).await;
    let unknown = ClientError::NoSuchInvitation;
    let answer = (answer.map_err(|error| error.refused_as(&[404], unknown))?).json()?;
    let text = |member: &str| answer[member].as_str().unwrap_or_default();
    let tenant = TenantId::parse(text("tenantId"));
    let api_key = text("apiKey");
    match tenant {
        Some(tenant) if is_printable(api_key) => Ok(JoinCredential {
            tenant,
            role: text("role").to_owned(),
            bound_id: text("boundId").to_owned(),
            api_key: SecretText::new(api_key),
            invitation: answer["invitationId"].as_str().map(str::to_owned),
        }),
        _ => Err(ClientError::answer("a tenant and a credential")),
    }
}

/// A credential is shown to an administrator, and goes into headers.
fn is_printable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// How far a device has come.
#[derive(Debug)]
pub enum EnrolmentProgress {
    InForce,
    /// A device in force has to add it: the person carries this request there.
    Asks(Box<EndorsementRequest>),
}

impl Approver {
    /// Whether the gateway lists this device as in force. Fails if it was revoked.
    fn is_in_force(&self, devices: &KnownDevices) -> Result<bool> {
        match devices.find(self.device_id()).map(|device| device.standing) {
            Some(DeviceStanding::Revoked | DeviceStanding::Ended) => {
                Err(ClientError::DeviceRevoked)
            }
            standing => Ok(standing.is_some()),
        }
    }

    /// Appends a number to this device's name if another device in force has that name. True if the
    /// profile has changed. Nobody has seen the name yet.
    async fn choose_free_name(&self) -> Result<bool> {
        let devices = self.devices().await?;
        let name = self.bundle.name().as_str();
        let taken: Vec<_> = devices.names_in_force().collect();
        if devices.find(self.device_id()).is_some() || !taken.contains(&name) {
            return Ok(false);
        }
        let short: String = name.chars().take(MAX_NUMBERED_CHARS).collect();
        let mut numbered = (2..=MAX_NUMBER).map(|number| format!("{short} {number}"));
        let Some(free) = numbered.find(|name| !taken.contains(&name.as_str())) else {
            return Ok(false);
        };
        self.update(|profile| {
            profile.name.clone_from(&free);
            Ok(())
        })?;
        Ok(true)
    }

    /// Brings this device into force, or returns the request for it. It can be called again at any
    /// time.
    pub async fn enrol(&self) -> Result<EnrolmentProgress> {
        let devices = self.devices().await?;
        if self.is_in_force(&devices)? {
            return Ok(EnrolmentProgress::InForce);
        }
        if devices.bundles.is_empty() {
            match self.register_first().await {
                // Another device was first, or there were devices before.
                Err(error) if error.code() == Some("FORBIDDEN") => {}
                registered => return registered.map(|()| EnrolmentProgress::InForce),
            }
        }
        let devices = self.devices().await?.bundles;
        if devices.is_empty() {
            return Err(ClientError::NoDeviceInForce);
        }
        let own = (&self.keys, &self.bundle);
        let now = self.now();
        let request = EndorsementRequest::new(&self.tenant, &self.id, own, now, &devices)?;
        Ok(EnrolmentProgress::Asks(Box::new(request)))
    }

    async fn register_first(&self) -> Result<()> {
        let change = StatementChange::Add(Box::new(self.bundle.clone()));
        let (own, now) = (self.device_id(), self.now());
        let statement = DeviceStatement::new(&self.tenant, &self.id, &change, now, own)?;
        let signature = statement.sign(&self.keys)?;
        let signed = SignedStatement::new(statement, signature, None);
        self.publish(&signed).await
    }

    /// Waits until another device has added this one. False if none has within `time`.
    pub async fn wait_until_in_force(&self, time: Duration) -> Result<bool> {
        let in_force = poll(POLL_PAUSE, time, bool::clone, async || {
            self.is_in_force(&self.devices().await?)
        });
        in_force.await
    }

    /// The address of the page, unless it is hosted elsewhere.
    pub fn page(&self) -> String {
        self.client().address()
    }
}
