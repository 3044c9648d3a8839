//! The devices of an approver: adds and revokes them by signed statements of its own devices, and
//! lists both. Enforcers verify the statements, so the gateway cannot add a device that they trust.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::e2e::{DeviceId, SignedStatement, StatementChange};
use crate::gateway::admission::KeyedSemaphore;
use crate::gateway::context::GatewayContext;
use crate::gateway::devices::history::{
    StatementVerdict, change_of, device_lines, judge_statement, malformed, revoked_line,
};
use crate::gateway::error::{Error, Result, found};
use crate::gateway::identity::administration::AdminService;
use crate::gateway::identity::caller::{Approver, Member};
use crate::protocol::device::{DeviceLine, DeviceList, RevokedDevice};
use crate::protocol::error::DeviceError;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::json::JsonNode;
use crate::protocol::message::raw;
use crate::protocol::timestamp::Timestamp;
use crate::store::devices::device::{DeviceVersion, NewStatement, StatementFact, StatementRow};

/// How often a statement is judged if other nodes accept some at the same time.
const TRIES: usize = 64;
const TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// A signed statement, well formed and about the right tenant and approver.
#[derive(Debug)]
pub struct StatementCommand {
    signed: SignedStatement,
    /// As it was received.
    text: String,
}

pub enum DeviceListing {
    /// The reader has this version.
    Unchanged(String),
    Whole(String, DeviceList),
}

pub struct DeviceService {
    pub(in crate::gateway) context: Arc<GatewayContext>,
    /// One statement of an approver at a time. Concurrent ones wait here, not each with a
    /// connection for the same lock.
    turns: KeyedSemaphore<(TenantId, ApproverId)>,
}

/// A version as a reader is told, and tells.
fn tag(version: DeviceVersion) -> String {
    let nanos = version.at.map_or(0, |at| at.inner().unix_timestamp_nanos());
    format!(
        "\"{}-{}-{}\"",
        version.position,
        version.ended,
        nanos / 1_000
    )
}

impl DeviceService {
    pub(in crate::gateway) fn new(context: &Arc<GatewayContext>) -> Self {
        Self {
            context: Arc::clone(context),
            turns: KeyedSemaphore::new(1),
        }
    }

    /// Reads a statement about a device of this approver. The caller has been checked.
    pub fn read(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        document: &JsonNode<'_>,
    ) -> Result<StatementCommand> {
        let signed =
            SignedStatement::parse(document).map_err(|error| malformed(error, document))?;
        let (tenant, named) = (signed.statement().tenant(), signed.statement().approver());
        check_subject(caller, approver, tenant, named)?;
        let text = document.raw.to_owned();
        Ok(StatementCommand { signed, text })
    }

    /// Adds a device, or records that another device adds it too. Also returns whether it is new.
    pub async fn add(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        command: &StatementCommand,
    ) -> Result<(DeviceLine, bool)> {
        let StatementChange::Add(bundle) = command.signed.statement().change() else {
            return Err(Error::invalid("/statement/statement", "device.add"));
        };
        let (rows, written) = self.append(caller, approver, command).await?;
        let id = bundle.id().to_string();
        let mut lines = device_lines(&rows).into_iter();
        match (lines.find(|line| line.device_id == id), written) {
            (Some(line), _) => Ok((line, false)),
            (None, Some(at)) => {
                tracing::info!(tenant = %caller.origin.tenant, %approver, device = %id, "a device was added");
                let line = DeviceLine {
                    device_id: id,
                    name: bundle.name().as_str().to_owned(),
                    bundle: bundle.to_text().map_err(|_| Error::Internal)?,
                    added_at: at,
                    added_by: command.signed.statement().by().to_string(),
                    revoked_at: None,
                    revoked_by: None,
                };
                Ok((line, true))
            }
            (None, None) => Err(Error::Internal),
        }
    }

    /// Revokes the device that the path names, for ever.
    pub async fn revoke(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        device: DeviceId,
        command: &StatementCommand,
    ) -> Result<RevokedDevice> {
        match command.signed.statement().change() {
            StatementChange::Revoke(id) if *id == device => {}
            StatementChange::Revoke(_) => {
                let expected = "the device that the path names";
                return Err(Error::invalid("/statement/deviceId", expected));
            }
            StatementChange::Add(_) => {
                return Err(Error::invalid("/statement/statement", "device.revoke"));
            }
        }
        let (rows, written) = self.append(caller, approver, command).await?;
        match (revoked_line(&rows, device), written) {
            (Some(line), _) => Ok(line),
            (None, Some(revoked_at)) => {
                tracing::info!(tenant = %caller.origin.tenant, %approver, %device, "a device was revoked");
                Ok(RevokedDevice {
                    device_id: device.to_string(),
                    revoked_at,
                    revoked_by: Some(command.signed.statement().by().to_string()),
                })
            }
            (None, None) => Err(Error::Internal),
        }
    }

    /// Judges a statement and appends it, unless it stands already. Returns the rows that it was
    /// judged by, and when it was written.
    async fn append(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        command: &StatementCommand,
    ) -> Result<(Vec<StatementRow>, Option<Timestamp>)> {
        caller.speaking_for(approver)?;
        let (tenant, signed) = (&caller.origin.tenant, &command.signed);
        let (statement, actor) = (signed.statement(), caller.actor(approver));
        let hash: [u8; 32] = Sha256::digest(statement.text()).into();
        let (change, device) = change_of(statement.change());
        let (device, by) = (device.to_string(), statement.by().to_string());
        let bundle = match statement.change() {
            StatementChange::Add(bundle) => Some(bundle),
            StatementChange::Revoke(_) => None,
        };
        let bundle_text = bundle.map(|bundle| bundle.to_text()).transpose();
        let bundle_text = bundle_text.map_err(|_| Error::Internal)?;
        let store = &self.context.store.credentials;
        let owner = (tenant.clone(), approver.clone());
        let _turn = self.turns.turn(&owner, TURN_TIMEOUT).await?;
        for _ in 0..TRIES {
            let rows = store.device_statements(tenant, approver).await?;
            let now = self.context.clock.now();
            let verdict = judge_statement(&rows, signed, &hash, now)?;
            let (first, only_key) = match verdict {
                StatementVerdict::Stands => return Ok((rows, None)),
                StatementVerdict::Adds { first, only_key } => (first, only_key),
                StatementVerdict::Repeats | StatementVerdict::Revokes => (false, false),
            };
            let adds = matches!(verdict, StatementVerdict::Adds { .. });
            let new = NewStatement {
                after: rows.last().map_or(0, |row| row.position),
                change,
                device: &device,
                by: &by,
                bundle: bundle_text.as_deref(),
                name: bundle.map(|bundle| bundle.name().as_str()),
                hash,
                signed: &command.text,
                key: bundle.filter(|_| adds).map(|bundle| *bundle.signing_key()),
                first,
                only_key,
            };
            match store
                .append_statement(&actor, tenant, approver, &new)
                .await?
            {
                StatementFact::Written(at) => return Ok((rows, Some(at))),
                StatementFact::Stale => {}
                StatementFact::NoTenant => return Err(Error::NotFound),
                StatementFact::NotFirst => return Err(DeviceError::NotFirst.into()),
                StatementFact::KeyTaken => return Err(DeviceError::Taken.into()),
            }
        }
        Err(Error::Unavailable)
    }

    /// The devices of an approver and their statements, unless the reader knows this version.
    pub async fn list(
        &self,
        caller: &Member,
        approver: &ApproverId,
        known: impl Fn(&str) -> bool,
    ) -> Result<DeviceListing> {
        self.context.check_reader(caller, approver).await?;
        let tenant = &caller.origin().tenant;
        let store = &self.context.store.credentials;
        let version = tag(store.device_version(tenant, approver).await?);
        if known(&version) {
            return Ok(DeviceListing::Unchanged(version));
        }
        let rows = store.device_statements(tenant, approver).await?;
        let devices = device_lines(&rows);
        let version = tag(DeviceVersion {
            position: rows.last().map_or(0, |row| row.position),
            ended: ended(&rows),
            at: rows.iter().map(|row| row.accepted_at).max(),
        });
        let statements = rows.into_iter().filter_map(|row| row.signed).map(raw);
        let list = DeviceList {
            approver_id: approver.clone(),
            devices,
            statements: statements.collect::<Result<_, _>>()?,
        };
        Ok(DeviceListing::Whole(version, list))
    }
}

/// Refuses a statement about another tenant than the caller's, or another approver than the path's.
pub(in crate::gateway) fn check_subject(
    caller: &Approver,
    approver: &ApproverId,
    tenant: &TenantId,
    named: &ApproverId,
) -> Result<()> {
    if *tenant != caller.origin.tenant {
        let expected = "the id of the tenant that this credential belongs to";
        return Err(Error::invalid("/statement/tenantId", expected));
    }
    if named != approver {
        let expected = "the approver that the path names";
        return Err(Error::invalid("/statement/approverId", expected));
    }
    Ok(())
}

/// How many of the devices that were added are not in force.
fn ended(rows: &[StatementRow]) -> i64 {
    let added = rows.iter().filter(|row| row.bundle.is_some());
    let ended = added.filter(|row| !row.key_in_force);
    let ended: std::collections::BTreeSet<_> = ended.map(|row| &row.device).collect();
    i64::try_from(ended.len()).unwrap_or(i64::MAX)
}

impl AdminService {
    /// An approver's devices, ended ones included.
    pub async fn devices(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Vec<DeviceLine>> {
        let rows = self.store.device_statements(tenant, approver).await?;
        Ok(device_lines(&rows))
    }

    /// Ends all devices of an approver, and lets the next one be the first.
    pub async fn reset_devices(&self, tenant: &TenantId, approver: &ApproverId) -> Result<()> {
        let reset = self.store.reset_devices(&self.actor, tenant, approver);
        found(reset.await?)?;
        tracing::info!(%tenant, %approver, "an approver's devices were reset");
        Ok(())
    }
}
