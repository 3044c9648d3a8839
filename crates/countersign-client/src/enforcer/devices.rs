//! The devices that may decide: those pinned at pairing, and those that they added since. The
//! gateway only carries the statements.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayAnswer, GatewayCall, path};
use crate::profile::ApproverRecord;
use crate::visible::visible;
use crate::wire;
use countersign_e2e::{DeviceId, DeviceTrust};
use countersign_protocol::id::ApproverId;

/// A list of devices is read again when it is older.
const LIST_LIFETIME: Duration = Duration::from_secs(60);
/// The time of reading is written no more often, if nothing else has changed.
const WRITE_INTERVAL: Duration = Duration::from_secs(30);

/// A device as people tell it from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDevice {
    pub id: DeviceId,
    pub name: String,
}

impl fmt::Display for NamedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", visible(&self.name), self.id)
    }
}

fn named(trust: &DeviceTrust) -> Vec<NamedDevice> {
    let devices = trust.in_force().iter().map(|device| NamedDevice {
        id: device.id(),
        name: device.bundle().name().as_str().to_owned(),
    });
    devices.collect()
}

impl Enforcer {
    fn is_older(&self, record: &ApproverRecord, than: Duration) -> bool {
        let age = (record.checked_at()).map(|at| self.access.now().inner() - at.inner());
        // A time in the future means that the clock was set back.
        age.is_none_or(|age| age.is_negative() || age >= than)
    }

    /// The devices in force of `asked`. Reads the statements again if the copy is old, or if
    /// `again`.
    pub(super) async fn devices_of(
        &mut self,
        asked: &[String],
        again: bool,
        deadline: Instant,
    ) -> Result<Vec<DeviceTrust>> {
        self.reload()?;
        let (mut fresh, mut unknown) = (Vec::new(), Vec::new());
        let here = &*self;
        let old = here.asked(asked);
        let old = old.filter(|it| again || here.is_older(it, LIST_LIFETIME));
        let reading = old.map(|known| async move {
            let mut trust = known.trust(here.tenant.clone())?;
            let followed = here.follow(&mut trust, deadline).await;
            Ok::<_, ClientError>((known.clone(), trust, followed))
        });
        for read in join_all(reading).await {
            let (known, trust, followed) = read?;
            match followed {
                // The gateway no longer has this pairing. Others may still be asked.
                Err(error) if error.is_refusal(404) => {
                    unknown.push(known.id);
                    continue;
                }
                followed => followed?,
            }
            let mut record = known.clone();
            record.remember(&trust, self.access.now())?;
            // A file that is written waits for the disk, which a new time alone is not worth.
            if self.is_older(&known, WRITE_INTERVAL) || !record.has_same_devices(&known) {
                fresh.push(record);
            }
        }
        if !fresh.is_empty() {
            self.update(|profile| {
                for record in &mut profile.approvers {
                    if let Some(newer) = fresh.iter().find(|newer| newer.id == record.id) {
                        record.merge(newer);
                    }
                }
                Ok(())
            })?;
        }
        // From the profile as it is now: it may know more than the gateway has shown.
        let devices: Vec<_> = (self.asked(asked))
            .filter(|record| !unknown.contains(&record.id))
            .map(|record| record.trust(self.tenant.clone()))
            .collect::<Result<_, _>>()?;
        match unknown.pop() {
            Some(approver) if devices.is_empty() => Err(ClientError::Unpaired { approver }),
            _ => Ok(devices),
        }
    }

    /// An approver's devices in force, read from the gateway just now.
    pub async fn refreshed_devices(
        &mut self,
        approver: &str,
        deadline: Instant,
    ) -> Result<Vec<NamedDevice>> {
        let asked = [approver.to_owned()];
        let trust = self.devices_of(&asked, true, deadline).await?;
        Ok(trust.iter().flat_map(named).collect())
    }

    /// An approver's devices in force, as far as this enforcer knows.
    pub fn known_devices(&self, record: &ApproverRecord) -> Result<Vec<NamedDevice>> {
        Ok(named(&record.trust(self.tenant.clone())?))
    }

    fn asked<'s>(&'s self, asked: &'s [String]) -> impl Iterator<Item = &'s ApproverRecord> {
        let records = self.approvers.iter();
        records.filter(|record| asked.contains(&record.id))
    }

    async fn list(&self, approver: &ApproverId, deadline: Instant) -> Result<GatewayAnswer> {
        let call = path(&["v1", "approvers", approver.as_str(), "devices"]);
        let client = &self.access.client;
        client
            .expect(&GatewayCall::get(call), &[200], deadline)
            .await
    }

    /// The well-formed statements about an approver's devices, none twice. The gateway can add
    /// anything else to the list.
    pub(super) async fn statements_of(
        &self,
        approver: &ApproverId,
        deadline: Instant,
    ) -> Result<Vec<String>> {
        let answer = self.list(approver, deadline).await?;
        let node = wire::parse(&answer.body)?;
        let statements = wire::array(&node, "statements").unwrap_or_default();
        let mut seen = BTreeSet::new();
        let statements = wire::statements(statements).into_iter();
        let texts = statements.filter_map(|signed| {
            let statement = signed.statement();
            let is_own = *statement.tenant() == self.tenant && statement.approver() == approver;
            let text = signed.to_text();
            (is_own && seen.insert(text.clone())).then_some(text)
        });
        Ok(texts.collect())
    }

    async fn follow(&self, trust: &mut DeviceTrust, deadline: Instant) -> Result<()> {
        let answer = self.list(trust.approver(), deadline).await?;
        let node = wire::parse(&answer.body)?;
        let statements = wire::array(&node, "statements");
        let statements = statements.ok_or_else(|| ClientError::answer("a list of statements"))?;
        trust.follow_all(&wire::statements(statements));
        Ok(())
    }
}
