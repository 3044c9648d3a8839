//! The devices of this approver. This one follows the statements from itself: what no known device has signed is shown as such.

use super::{Approver, deadline, locked};
use crate::error::ClientError;
use crate::gateway::{GatewayAnswer, GatewayCall, path};
use crate::profile::ApproverProfile;
use crate::wire;
use countersign_e2e::{
    DeviceBundle, DeviceId, DeviceStatement, DeviceTrust, EndorsementRequest, SignedStatement,
    TrustedDevice,
};
use countersign_protocol::json::{JsonNode, JsonValue};

/// What this device knows about one of the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceStanding {
    /// This very device, in force.
    Own,
    /// In force, by statements that lead from this device to it.
    Trusted,
    /// In force as the gateway says. No device that this one trusts has added it.
    Unverified,
    Revoked,
    /// It ended, as the gateway says: no statement shows it.
    Ended,
}

impl DeviceStanding {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "this device",
            Self::Trusted => "in force",
            Self::Unverified => "not verified",
            Self::Revoked => "revoked",
            Self::Ended => "ended by the gateway",
        }
    }

    pub fn is_in_force(self) -> bool {
        matches!(self, Self::Own | Self::Trusted | Self::Unverified)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDevice {
    pub id: DeviceId,
    pub name: String,
    /// As the gateway says.
    pub added_at: Option<String>,
    pub added_by: Option<String>,
    pub revoked_at: Option<String>,
    pub standing: DeviceStanding,
}

#[derive(Debug)]
pub struct KnownDevices {
    pub listed: Vec<ListedDevice>,
    /// As the gateway lists them, in force.
    pub(super) bundles: Vec<DeviceBundle>,
    /// The devices that this one trusts, by the statements in the list.
    trust: DeviceTrust,
}

impl KnownDevices {
    pub fn find(&self, id: DeviceId) -> Option<&ListedDevice> {
        self.listed.iter().find(|device| device.id == id)
    }

    /// The devices in force that this one has added, or that those have added, as this device knows. They stay if it is revoked.
    pub fn added_by(&self, id: DeviceId) -> impl Iterator<Item = &ListedDevice> {
        let added = self.trust.added_by(id);
        let listed = self.listed.iter();
        listed.filter(move |device| added.contains(&device.id))
    }

    /// The devices whose id begins with `prefix`.
    pub fn beginning(&self, prefix: &str) -> Vec<&ListedDevice> {
        let begins = |device: &&ListedDevice| device.id.to_string().starts_with(prefix);
        self.listed.iter().filter(begins).collect()
    }
}

/// A device as the gateway lists it.
struct DeviceEntry {
    id: DeviceId,
    bundle: DeviceBundle,
    added_at: Option<String>,
    added_by: Option<String>,
    revoked_at: Option<String>,
}

impl DeviceEntry {
    /// None if it is malformed: then there is nothing that could be shown or trusted.
    fn read(node: &JsonNode<'_>) -> Option<Self> {
        let members = node.as_object()?;
        let text = |name| Some(members.get(name)?.as_str()?.to_owned());
        let bundle = DeviceBundle::parse(&text("bundle")?).ok()?;
        Some(Self {
            id: bundle.id(),
            bundle,
            added_at: text("addedAt"),
            added_by: text("addedBy"),
            revoked_at: text("revokedAt"),
        })
    }

    fn standing(&self, trust: &DeviceTrust, own: DeviceId) -> DeviceStanding {
        match trust.device(self.id) {
            _ if trust.revoked().contains(&self.id) => DeviceStanding::Revoked,
            _ if self.revoked_at.is_some() => DeviceStanding::Ended,
            Ok(_) if self.id == own => DeviceStanding::Own,
            Ok(_) => DeviceStanding::Trusted,
            Err(_) => DeviceStanding::Unverified,
        }
    }
}

pub(super) fn array<'n, 'a>(
    node: &'n JsonNode<'a>,
    name: &str,
) -> Result<&'n [JsonNode<'a>], ClientError> {
    let member = node.as_object().and_then(|object| object.get(name));
    match member.map(|node| &node.value) {
        Some(JsonValue::Array(list)) => Ok(list),
        _ => Err(ClientError::answer(format!("an array {name}"))),
    }
}

/// The statements of a list. Malformed ones are skipped: they prove nothing.
fn signed(list: &JsonNode<'_>) -> Result<Vec<SignedStatement>, ClientError> {
    let statements = array(list, "statements")?.iter();
    Ok(statements
        .filter_map(|node| SignedStatement::parse(node).ok())
        .collect())
}

impl Approver {
    async fn list(&self) -> Result<GatewayAnswer, ClientError> {
        let call = GatewayCall::get(path(&["v1", "approvers", self.id.as_str(), "devices"]));
        self.client.expect(&call, &[200], deadline()).await
    }

    /// All statements about this approver's devices, byte for byte.
    pub(super) async fn statements(&self) -> Result<Vec<String>, ClientError> {
        let answer = self.list().await?;
        let node = wire::parse(&answer.body)?;
        let statements = array(&node, "statements")?.iter();
        Ok(statements.map(|node| node.raw.to_owned()).collect())
    }

    /// Follows these statements from this device, and stores the result in the profile.
    fn follow(&self, signed: &[SignedStatement]) -> Result<DeviceTrust, ClientError> {
        let take = |profile: &mut ApproverProfile| {
            let mut trust = profile.trust()?;
            trust.follow_all(signed);
            let is_new = profile.remember(&trust)?;
            Ok::<_, ClientError>((trust, is_new))
        };
        let mut rehearsed = locked(&self.profile).clone();
        match take(&mut rehearsed)? {
            (trust, false) => Ok(trust),
            (_, true) => Ok(self.update(take)?.0),
        }
    }

    /// The devices as the gateway lists them, judged by the statements that lead from this device to them.
    pub async fn devices(&self) -> Result<KnownDevices, ClientError> {
        let answer = self.list().await?;
        let node = wire::parse(&answer.body)?;
        let trust = self.follow(&signed(&node)?)?;
        let lines: Vec<_> = (array(&node, "devices")?.iter())
            .filter_map(DeviceEntry::read)
            .collect();
        let own = self.device_id();
        let listed = lines.iter().map(|line| ListedDevice {
            id: line.id,
            name: line.bundle.name().as_str().to_owned(),
            added_at: line.added_at.clone(),
            added_by: line.added_by.clone(),
            revoked_at: line.revoked_at.clone(),
            standing: line.standing(&trust, own),
        });
        let mut listed: Vec<_> = listed.collect();
        // The gateway need not list what it has shown statements about.
        for device in trust.in_force() {
            let id = device.id();
            if id != own && !listed.iter().any(|line| line.id == id) {
                listed.push(ListedDevice {
                    id,
                    name: device.bundle().name().as_str().to_owned(),
                    added_at: None,
                    added_by: trust.adders().get(&id).map(ToString::to_string),
                    revoked_at: None,
                    standing: DeviceStanding::Trusted,
                });
            }
        }
        let bundles = lines.into_iter().filter(|line| line.revoked_at.is_none());
        let bundles = bundles.map(|line| line.bundle).collect();
        Ok(KnownDevices {
            listed,
            bundles,
            trust,
        })
    }

    /// Adds the device that asks for it, and lets it add this one. To be called once a person has compared name and id.
    pub async fn add_device(&self, request: &EndorsementRequest) -> Result<(), ClientError> {
        let own = (&self.keys, &self.bundle);
        let endorsed = request.endorse(&self.tenant, &self.id, own)?;
        for signed in &endorsed {
            self.publish(signed).await?;
        }
        self.follow(&endorsed).map(drop)
    }

    pub(super) async fn publish(&self, signed: &SignedStatement) -> Result<(), ClientError> {
        let devices = path(&["v1", "approvers", self.id.as_str(), "devices"]);
        let call = GatewayCall::post(devices, signed.to_text());
        let published = self.client.expect(&call, &[200, 201], deadline());
        published.await.map(drop)
    }

    /// Revokes a device, and whatever it has added that is not among the `known` devices.
    pub async fn revoke_known(
        &self,
        device: DeviceId,
        known: &KnownDevices,
    ) -> Result<(), ClientError> {
        let own = self.device_id();
        let keeps = known.trust.in_force().iter().map(TrustedDevice::id);
        let keeps = keeps.filter(|id| *id != device).collect();
        let now = self.clock.now();
        let statement =
            DeviceStatement::revocation(&self.tenant, &self.id, device, &keeps, now, own)?;
        let signature = statement.sign(&self.keys)?;
        let signed = SignedStatement::new(statement, signature, None);
        let place = [
            "v1",
            "approvers",
            self.id.as_str(),
            "devices",
            &device.to_string(),
        ];
        let call = GatewayCall::delete(path(&place), signed.to_text());
        // Before the call, so that a gateway that drops the statement cannot hide it from this device.
        if device != own {
            self.follow(&[signed])?;
        }
        self.client
            .expect(&call, &[200], deadline())
            .await
            .map(drop)
    }

    /// The same, with the devices that the gateway lists now.
    pub async fn revoke_device(&self, device: DeviceId) -> Result<(), ClientError> {
        let known = self.devices().await?;
        self.revoke_known(device, &known).await
    }
}
