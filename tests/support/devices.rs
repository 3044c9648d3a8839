//! Devices of an approver, and the statements they sign.

use countersign::e2e::{
    DeviceBundle, DeviceId, DeviceInvitation, DeviceKeys, DeviceName, DeviceStatement,
    EncryptionKey, Error, Introduction, IntroductionClaims, PinnedEnforcer, SignedStatement,
    StatementChange,
};
use countersign::protocol::id::{ApproverId, EnforcerId, TenantId, TextId as _};
use countersign::protocol::timestamp::Timestamp;
use ed25519_dalek::SigningKey;
use reqwest::Method;

use super::{Answer, Client, now};

/// A device with keys of its own.
pub struct Device {
    pub keys: DeviceKeys,
    pub bundle: DeviceBundle,
}

impl Device {
    pub fn new(name: &str) -> Self {
        let mut random = |bytes: &mut [u8]| getrandom::fill(bytes).map_err(|_| Error::Random);
        let keys = DeviceKeys::generate(&mut random).unwrap();
        let bundle = DeviceBundle::of(&keys, DeviceName::parse(name).unwrap()).unwrap();
        Self { keys, bundle }
    }

    pub fn id(&self) -> String {
        self.keys.id().to_string()
    }

    /// The key that signs its decisions.
    pub fn signing_key(&self) -> SigningKey {
        SigningKey::from_bytes(&self.keys.secrets().0)
    }
}

/// An approver's devices, and when they sign.
pub struct Owner {
    pub tenant: TenantId,
    pub approver: ApproverId,
}

impl Owner {
    pub fn new(tenant: &TenantId, approver: &str) -> Self {
        Self {
            tenant: tenant.clone(),
            approver: ApproverId::parse(approver).unwrap(),
        }
    }

    pub fn path(&self) -> String {
        format!("/v1/approvers/{}/devices", self.approver)
    }

    /// A statement, signed by `by` and, if it is another, by the new device.
    pub fn signed(
        &self,
        change: &StatementChange,
        by: &Device,
        new: Option<&Device>,
        at: &str,
    ) -> SignedStatement {
        let at = Timestamp::parse(at).unwrap();
        let statement =
            DeviceStatement::new(&self.tenant, &self.approver, change, at, by.keys.id());
        let statement = statement.unwrap();
        let signature = statement.sign(&by.keys).unwrap();
        let possession = new.filter(|new| new.id() != by.id());
        let possession = possession.map(|new| statement.sign(&new.keys).unwrap());
        SignedStatement::new(statement, signature, possession)
    }

    /// That one device adds another, or itself.
    pub fn add(&self, by: &Device, new: &Device) -> String {
        let change = StatementChange::Add(Box::new(new.bundle.clone()));
        self.signed(&change, by, Some(new), &now()).to_text()
    }

    pub fn revoke(&self, by: &Device, id: DeviceId) -> String {
        self.signed(&StatementChange::Revoke(id), by, None, &now())
            .to_text()
    }

    pub fn introductions(&self) -> String {
        format!("/v1/approvers/{}/introductions", self.approver)
    }

    pub fn invitations(&self) -> String {
        format!("/v1/approvers/{}/invitations", self.approver)
    }

    /// That a device invites another one.
    pub fn invite(&self, by: &Device, at: &str) -> String {
        let at = Timestamp::parse(at).unwrap();
        let id = by.keys.id();
        let invitation = DeviceInvitation::new(&self.tenant, &self.approver, at, id);
        invitation.unwrap().sign(&by.keys).unwrap().to_text()
    }

    /// That a device introduces an enforcer with this key, paired at this time.
    pub fn introduce(&self, by: &Device, enforcer: &str, key: &EncryptionKey, at: &str) -> String {
        let enforcer = EnforcerId::parse(enforcer).unwrap();
        let enforcer = PinnedEnforcer::from_own_records(enforcer, *key);
        let at = Timestamp::parse(at).unwrap();
        let (tenant, approver) = (&self.tenant, &self.approver);
        let about = (&enforcer, Some("build machine"));
        let introduction = Introduction::new(
            tenant,
            approver,
            about,
            &IntroductionClaims::default(),
            at,
            by.keys.id(),
        );
        introduction.unwrap().sign(&by.keys).unwrap().to_text()
    }

    pub async fn post(&self, client: &Client, text: &str) -> Answer {
        let call = client.call(Method::POST, &self.path());
        call.text(text).send().await
    }

    pub async fn delete(&self, client: &Client, id: &str, text: &str) -> Answer {
        let path = format!("{}/{id}", self.path());
        client.call(Method::DELETE, &path).text(text).send().await
    }

    /// Adds the first device.
    pub async fn first(&self, client: &Client, name: &str) -> Device {
        let device = Device::new(name);
        let added = self.post(client, &self.add(&device, &device)).await;
        added.expect(201);
        device
    }

    /// Adds another device.
    pub async fn another(&self, client: &Client, by: &Device, name: &str) -> Device {
        let device = Device::new(name);
        let added = self.post(client, &self.add(by, &device)).await;
        added.expect(201);
        device
    }
}
