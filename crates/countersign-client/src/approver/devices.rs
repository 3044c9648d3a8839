//! The devices of this approver. This one follows the statements from itself: a device that no
//! known device has added is shown as not verified.

use super::own_seats::SeatNotice;
use super::role::Approver;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayAnswer, GatewayCall};
use crate::wire;
use countersign_e2e::{
    DeviceBundle, DeviceId, DeviceName, DeviceStatement, DeviceTrust, EndorsementRequest,
    SignedStatement, TrustedDevice,
};
use countersign_protocol::json::JsonNode;

/// The knowledge of this device about one of the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceStanding {
    /// This very device, in force.
    Own,
    /// In force, by statements that lead from this device to it.
    Trusted,
    /// In force by the word of the gateway alone.
    Unverified,
    Revoked,
    /// Ended by the word of the gateway alone.
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
    /// The name that it joined with, which its keys and all statements about it carry.
    pub name: String,
    /// What this device calls it instead. Nobody else sees it.
    pub nickname: Option<String>,
    /// As the gateway says.
    pub added_at: Option<String>,
    pub added_by: Option<String>,
    pub revoked_at: Option<String>,
    pub standing: DeviceStanding,
}

#[derive(Debug)]
pub struct KnownDevices {
    pub listed: Vec<ListedDevice>,
    /// Of the devices that the gateway lists as in force.
    pub(super) bundles: Vec<DeviceBundle>,
    trust: DeviceTrust,
}

impl KnownDevices {
    pub fn find(&self, id: DeviceId) -> Option<&ListedDevice> {
        self.listed.iter().find(|device| device.id == id)
    }

    /// The names that devices in force joined with.
    pub(super) fn names_in_force(&self) -> impl Iterator<Item = &str> {
        let in_force = self.listed.iter();
        let in_force = in_force.filter(|device| device.standing.is_in_force());
        in_force.map(|device| device.name.as_str())
    }

    /// The devices in force that `id` has added, or that those have added. They stay if it is
    /// revoked.
    pub fn added_by(&self, id: DeviceId) -> impl Iterator<Item = &ListedDevice> {
        let added = self.trust.added_by(id);
        let listed = self.listed.iter();
        listed.filter(move |device| added.contains(&device.id))
    }
}

impl ListedDevice {
    fn is_called(&self, name: &DeviceName) -> bool {
        self.name == name.as_str() || self.nickname.as_deref() == Some(name.as_str())
    }

    fn named(bundle: &DeviceBundle, standing: DeviceStanding) -> Self {
        Self {
            id: bundle.id(),
            name: bundle.name().as_str().to_owned(),
            nickname: None,
            added_at: None,
            added_by: None,
            revoked_at: None,
            standing,
        }
    }

    /// Reads a device as the gateway lists it, judged by `trust`. `None` if it is malformed.
    fn read(
        node: &JsonNode<'_>,
        trust: &DeviceTrust,
        own: DeviceId,
    ) -> Option<(Self, DeviceBundle)> {
        let text = |name| wire::text(node, name).map(str::to_owned);
        let bundle = DeviceBundle::parse(&text("bundle")?).ok()?;
        let revoked_at = text("revokedAt");
        let id = bundle.id();
        let standing = match trust.device(id) {
            _ if trust.revoked().contains(&id) => DeviceStanding::Revoked,
            _ if revoked_at.is_some() => DeviceStanding::Ended,
            Ok(_) if id == own => DeviceStanding::Own,
            Ok(_) => DeviceStanding::Trusted,
            Err(_) => DeviceStanding::Unverified,
        };
        let listed = Self {
            added_at: text("addedAt"),
            added_by: text("addedBy"),
            revoked_at,
            ..Self::named(&bundle, standing)
        };
        Some((listed, bundle))
    }
}

pub(super) fn array<'n, 'a>(node: &'n JsonNode<'a>, name: &str) -> Result<&'n [JsonNode<'a>]> {
    wire::array(node, name).ok_or_else(|| ClientError::answer(format!("an array {name}")))
}

impl Approver {
    async fn list(&self) -> Result<GatewayAnswer> {
        let call = GatewayCall::get(self.path(&["devices"]));
        self.access.call(&call, &[200]).await
    }

    /// All statements about this approver's devices, byte for byte.
    pub(super) async fn statements(&self) -> Result<Vec<String>> {
        let answer = self.list().await?;
        let node = wire::parse(&answer.body)?;
        let statements = array(&node, "statements")?.iter();
        Ok(statements.map(|node| node.raw.to_owned()).collect())
    }

    pub(super) async fn signed_statements(&self) -> Result<Vec<SignedStatement>> {
        let answer = self.list().await?;
        let node = wire::parse(&answer.body)?;
        Ok(wire::statements(array(&node, "statements")?))
    }

    /// Follows these statements from this device, and stores the result in the profile.
    fn follow(&self, signed: &[SignedStatement]) -> Result<DeviceTrust> {
        self.update_if_new(|profile| profile.follow(signed))
    }

    /// Follows the statements that the gateway has.
    pub(super) async fn follow_statements(&self) -> Result<()> {
        let signed = self.signed_statements().await?;
        self.follow(&signed).map(drop)
    }

    /// The devices as the gateway lists them, judged by the statements that lead from this device
    /// to them.
    pub async fn devices(&self) -> Result<KnownDevices> {
        let answer = self.list().await?;
        let node = wire::parse(&answer.body)?;
        let trust = self.follow(&wire::statements(array(&node, "statements")?))?;
        let own = self.device_id();
        let (mut listed, mut bundles) = (Vec::new(), Vec::new());
        for node in array(&node, "devices")? {
            if let Some((device, bundle)) = ListedDevice::read(node, &trust, own) {
                if device.revoked_at.is_none() {
                    bundles.push(bundle);
                }
                listed.push(device);
            }
        }
        // The gateway may withhold devices that its statements name.
        for device in trust.in_force() {
            let id = device.id();
            if id != own && !listed.iter().any(|line| line.id == id) {
                listed.push(ListedDevice {
                    added_by: trust.adders().get(&id).map(ToString::to_string),
                    ..ListedDevice::named(device.bundle(), DeviceStanding::Trusted)
                });
            }
        }
        let nicknames = self.nicknames();
        for device in &mut listed {
            device.nickname = nicknames.get(&device.id.to_string()).cloned();
        }
        Ok(KnownDevices {
            listed,
            bundles,
            trust,
        })
    }

    /// Calls a device by another name, on this device only: the name that it joined with is signed,
    /// and a gateway that could change it could pass one device off as another. That name brings
    /// the first state back.
    pub fn rename_device(
        &self,
        device: DeviceId,
        known: &KnownDevices,
        name: &DeviceName,
    ) -> Result<()> {
        let renamed = known.find(device).ok_or(ClientError::Choice(
            "there is no such device; see: countersign devices",
        ))?;
        let mut others = known.listed.iter().filter(|other| other.id != device);
        let taken = |other: &ListedDevice| other.standing.is_in_force() && other.is_called(name);
        if others.any(taken) {
            let problem = "another device has this name; choose one that tells them apart";
            return Err(ClientError::Choice(problem));
        }
        let (id, is_own) = (device.to_string(), renamed.name == name.as_str());
        self.update(|profile| {
            profile.nicknames.remove(&id);
            if !is_own {
                let name = name.as_str().to_owned();
                profile.nicknames.insert(id.clone(), name);
            }
            Ok(())
        })
    }

    /// Adds the device that asks for it, and lets it add this one. To be called once a person has
    /// compared name and id.
    pub async fn add_device(&self, request: &EndorsementRequest) -> Result<()> {
        let own = (&self.keys, &self.bundle);
        let endorsed = request.endorse(&self.tenant, &self.id, own)?;
        for signed in &endorsed {
            self.publish(signed).await?;
        }
        self.follow(&endorsed).map(drop)
    }

    pub(super) async fn publish(&self, signed: &SignedStatement) -> Result<()> {
        let call = GatewayCall::post(self.path(&["devices"]), signed.to_text());
        self.access.call(&call, &[200, 201]).await.map(drop)
    }

    /// Revokes a device, and the devices that it has added, except the `known` ones. It loses its
    /// seats in teams, too. A team that does not follow does not stop the revocation.
    pub async fn revoke_known(
        &self,
        device: DeviceId,
        known: &KnownDevices,
    ) -> Result<Vec<SeatNotice>> {
        // Before the word of that device counts for nothing.
        let mut notices = self.adopt_teams().await;
        // A device that was added a moment ago stays.
        let _known = self.follow_statements().await;
        // A device that is revoked signs nothing any more, so it gives up its own seats first.
        if device == self.device_id() {
            self.clear_seats(device, &mut notices).await;
            self.publish_revocation(device, known).await?;
        } else {
            // Members would forget the agents that only that device has introduced.
            let _later = self.vouch_for_own().await;
            self.publish_revocation(device, known).await?;
            self.clear_seats(device, &mut notices).await;
        }
        Ok(notices)
    }

    async fn publish_revocation(&self, device: DeviceId, known: &KnownDevices) -> Result<()> {
        let own = self.device_id();
        let keeps = known.trust.in_force().iter().map(TrustedDevice::id);
        let keeps = keeps.filter(|id| *id != device).collect();
        let now = self.now();
        let statement =
            DeviceStatement::revocation(&self.tenant, &self.id, device, &keeps, now, own)?;
        let signature = statement.sign(&self.keys)?;
        let signed = SignedStatement::new(statement, signature, None);
        let path = self.path(&["devices", &device.to_string()]);
        let call = GatewayCall::delete(path, signed.to_text());
        // Before the call: a gateway that drops the statement cannot hide it from this device.
        if device != own {
            self.follow(&[signed])?;
        }
        self.access.call(&call, &[200]).await.map(drop)
    }

    /// The same, with the devices that the gateway lists now.
    pub async fn revoke_device(&self, device: DeviceId) -> Result<Vec<SeatNotice>> {
        let known = self.devices().await?;
        self.revoke_known(device, &known).await
    }
}
