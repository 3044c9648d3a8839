//! A seat of a team: one person with their devices, and perhaps a stand-in for a time.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use time::Duration;

use super::bundle::DeviceBundle;
use super::device_id::{DeviceId, MAX_DEVICES};
use super::error::Result;
use super::trust::DeviceTrust;
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::timestamp::Timestamp;

pub const MAX_STAND_IN_LIFETIME: Duration = Duration::days(30);

/// Somebody who decides on the seat of another one for a time. The seat still counts once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    pub approver: ApproverId,
    pub devices: Vec<DeviceBundle>,
    pub from: Timestamp,
    pub until: Timestamp,
}

/// The place of one person in a team. It counts once, whoever sits on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamSeat {
    pub approver: ApproverId,
    pub owner: bool,
    pub devices: Vec<DeviceBundle>,
    pub stand_in: Option<StandIn>,
}

impl TeamSeat {
    /// The people who may decide on the seat at `at`, with their devices: the member first. Without
    /// a time, nobody stands in.
    pub fn people(&self, tenant: &TenantId, at: Option<Timestamp>) -> Vec<DeviceTrust> {
        let stand_in = at.and_then(|at| self.stand_in_at(at));
        let own = Some((&self.approver, &self.devices));
        let people = own
            .into_iter()
            .chain(stand_in.map(|it| (&it.approver, &it.devices)));
        let trust = |(approver, devices): (&ApproverId, &Vec<DeviceBundle>)| {
            let (tenant, approver) = (tenant.clone(), approver.clone());
            DeviceTrust::from_own_records(tenant, approver, devices.clone(), BTreeSet::new())
        };
        people.map(trust).collect()
    }

    pub(super) fn stand_in_at(&self, now: Timestamp) -> Option<&StandIn> {
        let stand_in = self.stand_in.as_ref();
        stand_in.filter(|it| it.from <= now && now < it.until)
    }

    pub fn has_device(&self, id: DeviceId) -> bool {
        self.device(id).is_some()
    }

    /// Whether this is a device of the member or of the stand-in.
    pub fn names_device(&self, id: DeviceId) -> bool {
        let stand_in = self.stand_in.iter().flat_map(|it| &it.devices);
        self.devices.iter().chain(stand_in).any(|it| it.id() == id)
    }

    /// Whether this person stands in with this device, at some time.
    pub fn has_stand_in_device(&self, approver: &ApproverId, id: DeviceId) -> bool {
        let stand_in = self.stand_in.as_ref();
        let mut devices = stand_in.into_iter().filter(|it| it.approver == *approver);
        devices.any(|it| it.devices.iter().any(|device| device.id() == id))
    }

    pub(super) fn device(&self, id: DeviceId) -> Option<&DeviceBundle> {
        self.devices.iter().find(|device| device.id() == id)
    }

    pub(super) fn to_json(&self) -> Result<Value> {
        let mut seat = json!({
            "approverId": self.approver.as_str(),
            "owner": self.owner,
            "devices": bundle_texts(&self.devices)?,
        });
        if let Some(it) = &self.stand_in {
            seat["standIn"] = json!({
                "approverId": it.approver.as_str(),
                "devices": bundle_texts(&it.devices)?,
                "from": it.from.to_string(),
                "until": it.until.to_string(),
            });
        }
        Ok(seat)
    }

    pub(super) fn read(mut seat: MemberReader<'_, '_>) -> Result<Self> {
        let stand_in = seat.optional_inner("standIn")?.map(StandIn::read);
        let read = Self {
            approver: seat.id("approverId")?,
            owner: read_flag(&mut seat, "owner")?,
            devices: read_bundles(&mut seat)?,
            stand_in: stand_in.transpose()?,
        };
        seat.finish()?;
        Ok(read)
    }
}

impl StandIn {
    fn read(mut reader: MemberReader<'_, '_>) -> Result<Self> {
        let read = Self {
            approver: reader.id("approverId")?,
            devices: read_bundles(&mut reader)?,
            from: read_second(&mut reader, "from")?,
            until: read_second(&mut reader, "until")?,
        };
        reader.finish()?;
        let time = read.until.inner() - read.from.inner();
        if time.is_positive() && time <= MAX_STAND_IN_LIFETIME {
            return Ok(read);
        }
        let expected = "a time after `from`, at most 30 days later";
        Err(reader.refusal("until", expected).into())
    }
}

fn bundle_texts(bundles: &[DeviceBundle]) -> Result<Vec<String>> {
    bundles.iter().map(DeviceBundle::to_text).collect()
}

pub(super) fn read_bundles(reader: &mut MemberReader<'_, '_>) -> Result<Vec<DeviceBundle>> {
    let list = reader.items("devices", MAX_DEVICES, "bundles")?.iter();
    let bundle = |node: &JsonNode<'_>| {
        let expected = || reader.refusal("devices", "an array of texts");
        DeviceBundle::parse(node.as_str().ok_or_else(expected)?)
    };
    list.map(bundle).collect()
}

pub(super) fn read_flag(reader: &mut MemberReader<'_, '_>, name: &'static str) -> ReadResult<bool> {
    let flag = reader.optional_bool(name)?;
    flag.ok_or_else(|| reader.refusal(name, "true or false (required)"))
}

/// A time with one spelling, so that seats can be compared as they stand.
fn read_second(reader: &mut MemberReader<'_, '_>, name: &'static str) -> ReadResult<Timestamp> {
    let expected = "a time in whole seconds such as 2026-02-21T12:00:00Z";
    reader.parsed(name, expected, |text| {
        let at = Timestamp::parse(text)?;
        (at.inner().nanosecond() == 0 && at.to_string() == text).then_some(at)
    })
}
