//! The devices that an approver's statements add up to, and whether another one counts. Pure:
//! `devices` reads and writes.

use std::collections::BTreeSet;

use time::Duration;

use crate::e2e::{
    self, DEVICE_ID, DeviceBundle, DeviceId, DeviceTrust, INTRODUCTION, INVITATION, SIGNATURE,
    SIGNED, SIGNED_INTRODUCTION, SIGNED_INVITATION, STATEMENT, SignedIntroduction,
    SignedInvitation, SignedStatement, StatementChange,
};
use crate::gateway::error::{Error, Result};
use crate::protocol::device::{
    DeviceChange, DeviceLine, MAX_STATEMENTS, MAX_STATEMENTS_TO_REVOKE, RevokedDevice,
};
use crate::protocol::error::DeviceError;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::json::JsonNode;
use crate::protocol::reader::InvalidMember;
use crate::protocol::timestamp::Timestamp;
use crate::store::devices::device::StatementRow;

/// How far the time of a statement may be from the gateway's clock: an unused one must not count
/// much later.
const STATEMENT_LIFETIME: Duration = Duration::minutes(10);

/// The signed objects, and the objects around them.
const INNER: [&str; 3] = [STATEMENT, INTRODUCTION, INVITATION];
const OUTER: [&str; 3] = [SIGNED, SIGNED_INTRODUCTION, SIGNED_INVITATION];

/// The devices that were ever added, in that order.
pub fn device_lines(rows: &[StatementRow]) -> Vec<DeviceLine> {
    let mut lines: Vec<DeviceLine> = Vec::new();
    for row in rows {
        let (Some(device), Some(by)) = (&row.device, &row.by) else {
            continue;
        };
        let known = lines.iter_mut().find(|line| line.device_id == *device);
        match (row.change, known) {
            (DeviceChange::Add, None) => lines.push(DeviceLine {
                device_id: device.clone(),
                name: row.name.clone().unwrap_or_default(),
                bundle: row.bundle.clone().unwrap_or_default(),
                added_at: row.accepted_at,
                added_by: by.clone(),
                revoked_at: row.key_revoked_at,
                revoked_by: None,
            }),
            // Otherwise an administrator was first.
            (DeviceChange::Revoke, Some(line)) if line.revoked_at == Some(row.accepted_at) => {
                line.revoked_by = Some(by.clone());
            }
            (DeviceChange::Add | DeviceChange::Revoke | DeviceChange::Reset, _) => {}
        }
    }
    lines
}

/// A device that was revoked, perhaps without ever having been added.
pub fn revoked_line(rows: &[StatementRow], id: DeviceId) -> Option<RevokedDevice> {
    let id = id.to_string();
    let lines = device_lines(rows);
    if let Some(line) = lines.into_iter().find(|line| line.device_id == id) {
        return Some(RevokedDevice {
            revoked_at: line.revoked_at?,
            device_id: line.device_id,
            revoked_by: line.revoked_by,
        });
    }
    let mut rows = rows.iter();
    let row = rows.find(|row| row.device.as_ref() == Some(&id))?;
    Some(RevokedDevice {
        device_id: id,
        revoked_at: row.accepted_at,
        revoked_by: row.by.clone(),
    })
}

/// How a statement that counts is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementVerdict {
    /// It is written already, or says what its signer has said before.
    Stands,
    /// A new device, which signs for itself if it is the first. The first ever has the approver's
    /// first signing key.
    Adds {
        first: bool,
        only_key: bool,
    },
    /// About a device that is in force or revoked already. Readers that trust only this signer need
    /// it.
    Repeats,
    Revokes,
}

#[derive(Default)]
struct DeviceHistory {
    in_force: Vec<DeviceBundle>,
    revoked: BTreeSet<DeviceId>,
    added: BTreeSet<DeviceId>,
    /// Change, device and signer of each statement.
    said: Vec<(DeviceChange, DeviceId, DeviceId)>,
    /// Whether there was no device since the last reset, or ever.
    fresh: bool,
    since_reset: usize,
}

impl DeviceHistory {
    /// A stored statement that cannot be read is a fault: it was judged when it was written.
    fn of(rows: &[StatementRow]) -> Result<Self> {
        let unreadable = |error: e2e::Error| {
            tracing::error!(%error, "a stored statement about a device cannot be read");
            Error::Internal
        };
        let mut history = Self {
            fresh: true,
            ..Self::default()
        };
        for row in rows {
            let (Some(device), Some(by)) = (&row.device, &row.by) else {
                history.fresh = true;
                history.since_reset = 0;
                continue;
            };
            let device = DeviceId::parse(device).map_err(unreadable)?;
            let by = DeviceId::parse(by).map_err(unreadable)?;
            history.said.push((row.change, device, by));
            history.since_reset += 1;
            if row.change == DeviceChange::Revoke || !row.key_in_force {
                history.revoked.insert(device);
            }
            if row.change == DeviceChange::Add {
                history.fresh = false;
                if history.added.insert(device) && row.key_in_force {
                    let bundle = row.bundle.as_deref().unwrap_or_default();
                    let bundle = DeviceBundle::parse(bundle).map_err(unreadable)?;
                    history.in_force.push(bundle);
                }
            }
        }
        Ok(history)
    }

    fn is_in_force(&self, bundle: &DeviceBundle) -> bool {
        !self.revoked.contains(&bundle.id())
            && self.in_force.iter().any(|known| known.same_keys(bundle))
    }

    /// The known devices without the statements about this one, so that a statement is verified
    /// even if it changes nothing.
    fn without(&self, signed: &SignedStatement, id: DeviceId) -> DeviceTrust {
        let statement = signed.statement();
        let in_force = self.in_force.iter();
        let in_force = match statement.change() {
            StatementChange::Add(bundle) => in_force
                .filter(|known| !known.same_keys(bundle))
                .cloned()
                .collect(),
            StatementChange::Revoke(_) => in_force.cloned().collect(),
        };
        let mut revoked = self.revoked.clone();
        if matches!(statement.change(), StatementChange::Revoke(_)) {
            revoked.remove(&id);
        }
        let (tenant, approver) = (statement.tenant().clone(), statement.approver().clone());
        DeviceTrust::from_own_records(tenant, approver, in_force, revoked)
    }

    fn judge(
        &self,
        signed: &SignedStatement,
        only_key: bool,
    ) -> Result<StatementVerdict, e2e::Error> {
        let statement = signed.statement();
        let (change, id) = change_of(statement.change());
        let by = statement.by();
        // A revocation may say anew which devices stay in force.
        if self.said.contains(&(change, id, by))
            && self.revoked.contains(&id) == (change == DeviceChange::Revoke)
            && statement.keeps().is_none()
        {
            return Ok(StatementVerdict::Stands);
        }
        if self.revoked.contains(&by) {
            return Err(e2e::Error::RevokedDevice(by));
        }
        let mut trust = self.without(signed, id);
        match statement.change() {
            // It adds itself.
            StatementChange::Add(bundle) if by == id => {
                if self.is_in_force(bundle) {
                    return Ok(StatementVerdict::Stands);
                }
                if !self.fresh {
                    return Err(e2e::Error::NotFirstDevice);
                }
                let (tenant, approver) = (trust.tenant().clone(), trust.approver().clone());
                DeviceTrust::without_devices(tenant, approver).register_first(signed)?;
                let first = true;
                Ok(StatementVerdict::Adds { first, only_key })
            }
            StatementChange::Add(bundle) => {
                trust.follow(signed)?;
                let (first, only_key) = (false, false);
                Ok(if self.is_in_force(bundle) {
                    StatementVerdict::Repeats
                } else {
                    StatementVerdict::Adds { first, only_key }
                })
            }
            StatementChange::Revoke(_) => {
                trust.follow(signed)?;
                Ok(if self.revoked.contains(&id) {
                    StatementVerdict::Repeats
                } else {
                    StatementVerdict::Revokes
                })
            }
        }
    }
}

pub fn change_of(change: &StatementChange) -> (DeviceChange, DeviceId) {
    match change {
        StatementChange::Add(bundle) => (DeviceChange::Add, bundle.id()),
        StatementChange::Revoke(id) => (DeviceChange::Revoke, *id),
    }
}

/// Judges a statement about the right tenant and approver by all that were accepted before it.
pub fn judge_statement(
    rows: &[StatementRow],
    signed: &SignedStatement,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<StatementVerdict> {
    let same = |row: &StatementRow| row.hash.as_deref() == Some(hash.as_slice());
    if rows.iter().any(same) {
        return Ok(StatementVerdict::Stands);
    }
    let history = DeviceHistory::of(rows)?;
    let statement = signed.statement();
    let verdict = history
        .judge(signed, rows.is_empty())
        .map_err(|error| refusal(&error, statement.by()))?;
    if verdict == StatementVerdict::Stands {
        return Ok(verdict);
    }
    check_time(statement.at(), now)?;
    let (change, id) = change_of(statement.change());
    let limit = if change == DeviceChange::Revoke && history.added.contains(&id) {
        MAX_STATEMENTS_TO_REVOKE
    } else {
        MAX_STATEMENTS
    };
    if history.since_reset >= limit {
        return Err(DeviceError::ListFull { limit }.into());
    }
    Ok(verdict)
}

/// Refuses a statement of long ago or of the future.
pub fn check_time(at: Timestamp, now: Timestamp) -> Result<()> {
    if (now.inner() - at.inner()).abs() > STATEMENT_LIFETIME {
        let expected = "a time within 10 minutes of the gateway's clock";
        return Err(InvalidMember::timestamp("/statement/at", expected).into());
    }
    Ok(())
}

/// The devices in force by these statements.
fn trust_of(
    rows: &[StatementRow],
    tenant: &TenantId,
    approver: &ApproverId,
) -> Result<DeviceTrust> {
    let DeviceHistory {
        in_force, revoked, ..
    } = DeviceHistory::of(rows)?;
    let (tenant, approver) = (tenant.clone(), approver.clone());
    Ok(DeviceTrust::from_own_records(
        tenant, approver, in_force, revoked,
    ))
}

/// Judges an introduction of an enforcer: a device in force must have signed it.
pub fn judge_introduction(rows: &[StatementRow], signed: &SignedIntroduction) -> Result<()> {
    let introduction = signed.introduction();
    let trust = trust_of(rows, introduction.tenant(), introduction.approver())?;
    let accepted = signed.accept(&trust).map(drop);
    accepted.map_err(|error| refusal(&error, introduction.by()))
}

/// Judges an invitation of another device: a device in force must have signed it.
pub fn judge_invitation(rows: &[StatementRow], signed: &SignedInvitation) -> Result<()> {
    let invitation = signed.invitation();
    let trust = trust_of(rows, invitation.tenant(), invitation.approver())?;
    let verified = signed.verify(&trust);
    verified.map_err(|error| refusal(&error, invitation.by()))
}

/// The refusal of a statement that is well formed.
fn refusal(error: &e2e::Error, by: DeviceId) -> Error {
    use e2e::Error as E;
    match error {
        E::UnknownDevice(_) => DeviceError::UnknownSigner.into(),
        E::RevokedDevice(id) if *id == by => DeviceError::RevokedSigner.into(),
        E::RevokedDevice(_) => DeviceError::Revoked.into(),
        E::StatementSignature => DeviceError::Signature.into(),
        E::Possession => DeviceError::Possession.into(),
        E::DeviceIdTaken(_) => DeviceError::Taken.into(),
        E::NotFirstDevice => DeviceError::NotFirst.into(),
        E::TooManyDevices { limit } => DeviceError::TooMany { limit: *limit }.into(),
        error => {
            tracing::error!(%error, "a statement about a device could not be judged");
            Error::Internal
        }
    }
}

/// The refusal of a signed statement that is not well formed. It names the member of the body.
pub fn malformed(error: e2e::Error, document: &JsonNode<'_>) -> Error {
    use e2e::Error as E;
    let text = |names: [&str; 2]| {
        let outer = document.as_object()?.get(names[0])?;
        if names[1].is_empty() {
            return outer.as_str();
        }
        outer.as_object()?.get(names[1])?.as_str()
    };
    let invalid = match error {
        E::Member(mut invalid)
            if OUTER.contains(&invalid.document) || INNER.contains(&invalid.document) =>
        {
            if INNER.contains(&invalid.document) {
                invalid.pointer.insert_str(0, "/statement");
            }
            invalid
        }
        E::Version { what } if INNER.contains(&what) => {
            InvalidMember::unsupported("/statement/v", "1")
        }
        E::Base64 { what } | E::Length { what, .. } if what == SIGNATURE => {
            let is_first = text(["signature", ""]).is_none_or(|text| !is_signature(text));
            let pointer = if is_first {
                "/signature"
            } else {
                "/possession"
            };
            let expected = "64 bytes in base64url, without padding: an Ed25519 signature";
            InvalidMember::shape(pointer, expected)
        }
        E::Base64 { what } | E::Length { what, .. } if what == DEVICE_ID => {
            let device = text(["statement", "deviceId"]);
            let is_device = device.is_some_and(|text| DeviceId::parse(text).is_err());
            let pointer = if is_device {
                "/statement/deviceId"
            } else {
                "/statement/by"
            };
            InvalidMember::shape(pointer, "the id of a device: 22 characters of base64url")
        }
        error => InvalidMember::shape(
            "/statement/bundle",
            format!("the bundle of a device, well formed ({error})"),
        ),
    };
    invalid.into()
}

fn is_signature(text: &str) -> bool {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text);
    bytes.is_ok_and(|bytes| bytes.len() == 64)
}
