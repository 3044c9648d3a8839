//! The request of a new device to a device in force to add it: one text, which the person carries
//! from the new to the old device. The new device signs in advance the statements of both about
//! each other, so that nothing has to travel back.
//!
//! The list of devices comes from the gateway and may be a lie. The signatures of the new device
//! about other devices are therefore in this text alone, and the old device publishes only those
//! about itself.

use serde_json::json;

use super::bundle::DeviceBundle;
use super::device_id::{DeviceId, MAX_DEVICES};
use super::encoding::{self, canonical_text, parse_canonical, versioned};
use super::error::{Error, Result};
use super::keys::DeviceKeys;
use super::statement::{DeviceStatement, SignedStatement, StatementChange, read_signature};
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::reader::MemberReader;
use countersign_protocol::signature::Signature;
use countersign_protocol::timestamp::Timestamp;

const REQUEST: &str = "the new device's request";
const MARK: &str = "#/device/";

/// The signatures of the new device for one device in force.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EndorsementText {
    device: DeviceId,
    /// Over the statement by which that device adds the new one.
    possession: Signature,
    /// Over the statement by which the new device adds that one.
    signature: Signature,
}

/// A new device's request to be added. Well formed, nothing more: a person compares name and id
/// before it is endorsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndorsementRequest {
    tenant: TenantId,
    approver: ApproverId,
    bundle: DeviceBundle,
    at: Timestamp,
    by: Vec<EndorsementText>,
}

fn addition(
    request: (&TenantId, &ApproverId, Timestamp),
    bundle: &DeviceBundle,
    by: DeviceId,
) -> Result<DeviceStatement> {
    let (tenant, approver, at) = request;
    let change = StatementChange::Add(Box::new(bundle.clone()));
    DeviceStatement::new(tenant, approver, &change, at, by)
}

impl EndorsementRequest {
    /// On the new device. `devices` are those in force, as the gateway lists them.
    pub fn new(
        tenant: &TenantId,
        approver: &ApproverId,
        (keys, bundle): (&DeviceKeys, &DeviceBundle),
        at: Timestamp,
        devices: &[DeviceBundle],
    ) -> Result<Self> {
        if devices.len() > MAX_DEVICES {
            let limit = MAX_DEVICES;
            return Err(Error::TooManyDevices { limit });
        }
        let about = (tenant, approver, at);
        let sign = |device: &DeviceBundle| {
            let id = device.id();
            Ok(EndorsementText {
                device: id,
                possession: addition(about, bundle, id)?.sign(keys)?,
                signature: addition(about, device, bundle.id())?.sign(keys)?,
            })
        };
        Ok(Self {
            tenant: tenant.clone(),
            approver: approver.clone(),
            bundle: bundle.clone(),
            at,
            by: devices.iter().map(sign).collect::<Result<_>>()?,
        })
    }

    /// Reads a link, or only the text at its end.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let text = text.rsplit_once(MARK).map_or(text, |(_, text)| text);
        let bytes = encoding::decode(REQUEST, text).map_err(|_| Error::EndorsementLink)?;
        let node = parse_canonical(REQUEST, &bytes)?;
        let mut reader = versioned(REQUEST, &node)?;
        let bundle = reader.str("bundle")?;
        let by = reader.required("by", "an array")?.as_array();
        let by = by.filter(|list| list.len() <= MAX_DEVICES);
        let expected = || format!("an array of at most {MAX_DEVICES}");
        let by = by.ok_or_else(|| reader.refusal("by", expected()))?;
        let request = Self {
            tenant: reader.id("tenantId")?,
            approver: reader.id("approverId")?,
            bundle: DeviceBundle::parse(bundle)?,
            at: reader.timestamp("at")?,
            by: by
                .iter()
                .map(|node| EndorsementText::read(reader.item("by", node)?))
                .collect::<Result<_>>()?,
        };
        reader.finish()?;
        Ok(request)
    }

    /// The text that carries it.
    pub fn to_text(&self) -> Result<String> {
        let by = self.by.iter().map(|signed| {
            json!({
                "deviceId": signed.device.to_string(),
                "possession": signed.possession.to_text(),
                "signature": signed.signature.to_text(),
            })
        });
        let members = json!({
            "v": 1,
            "tenantId": self.tenant.as_str(),
            "approverId": self.approver.as_str(),
            "bundle": self.bundle.to_text()?,
            "at": self.at.to_string(),
            "by": by.collect::<serde_json::Value>(),
        });
        let text = canonical_text(REQUEST, &members)?;
        Ok(encoding::encode(text.as_bytes()))
    }

    /// As a link to the approver's page.
    pub fn link(&self, page: &str) -> Result<String> {
        let page = page.trim_end_matches('/');
        Ok(format!("{page}/{MARK}{}", self.to_text()?))
    }

    getters! {
        pub ref bundle: DeviceBundle;
        pub copy at: Timestamp;
    }

    /// On a device in force, after its person has said yes to the new device's name and id: the
    /// statements to publish, in this order. The second one, by which the new device adds this one,
    /// is missing if the new device was shown another bundle.
    pub fn endorse(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        (keys, own): (&DeviceKeys, &DeviceBundle),
    ) -> Result<Vec<SignedStatement>> {
        if *tenant != self.tenant || *approver != self.approver {
            return Err(Error::OtherApprover);
        }
        let mut signed = self.by.iter().filter(|signed| signed.device == own.id());
        let signed = signed.next().ok_or(Error::NotAsked)?;
        if self.bundle.same_keys(own) {
            return Err(Error::NotAsked);
        }
        let about = (tenant, approver, self.at);
        let addition_of_new = addition(about, &self.bundle, own.id())?;
        let by_own = addition_of_new.sign(keys)?;
        let added = SignedStatement::new(addition_of_new, by_own, Some(signed.possession));
        if !added.possession_by(self.bundle.signing_key()) {
            return Err(Error::Possession);
        }
        let addition_of_own = addition(about, own, self.bundle.id())?;
        let possession = addition_of_own.sign(keys)?;
        let back = SignedStatement::new(addition_of_own, signed.signature, Some(possession));
        let back = (back.signed_by(self.bundle.signing_key())).then_some(back);
        Ok([Some(added), back].into_iter().flatten().collect())
    }
}

impl EndorsementText {
    fn read(mut reader: MemberReader<'_, '_>) -> Result<Self> {
        let signed = Self {
            device: DeviceId::parse(reader.str("deviceId")?)?,
            possession: read_signature(reader.str("possession")?)?,
            signature: read_signature(reader.str("signature")?)?,
        };
        reader.finish()?;
        Ok(signed)
    }
}
