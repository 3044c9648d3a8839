//! The enforcer, opened from its profile.

use std::sync::Arc;

use tokio::time::Instant;

use super::receipt_folder::ReceiptFolder;
use crate::access::GatewayAccess;
use crate::error::{ClientError, Result};
use crate::gateway::GatewayClient;
use crate::log::LogCheck;
use crate::profile::{ApproverRecord, ENFORCER, EnforcerProfile, Profile, ProfileFile};
use countersign_e2e::EnforcerKeys;
use countersign_protocol::clock::Clock;
use countersign_protocol::envelope::EnvelopeSender;
use countersign_protocol::id::{ApproverId, EnforcerId, TenantId};

/// An enforcer as its profile describes it.
pub struct Enforcer {
    pub(super) access: Arc<GatewayAccess>,
    pub(super) id: EnforcerId,
    pub(super) tenant: TenantId,
    pub(super) keys: EnforcerKeys,
    pub(super) approvers: Vec<ApproverRecord>,
    operators: Option<Vec<ApproverId>>,
    pub(super) file: ProfileFile,
    /// When orders of approvers were last read.
    pub(super) orders_read_at: Option<Instant>,
    pub(super) receipts: Option<ReceiptFolder>,
    /// Why the last receipt was not saved.
    pub(super) receipt_problem: Option<String>,
}

impl Enforcer {
    pub fn open(file: &ProfileFile, clock: &Clock) -> Result<Self> {
        let profile = file.load_enforcer()?;
        let sender = EnvelopeSender {
            enforcer_id: Some(profile.id()?),
            ..EnvelopeSender::default()
        };
        Ok(Self {
            access: Arc::new(GatewayAccess::new(&profile.gateway, clock, sender)?),
            id: profile.id()?,
            tenant: profile.gateway.tenant()?,
            keys: profile.keys()?,
            operators: profile.operators()?,
            approvers: profile.approvers,
            file: file.clone(),
            orders_read_at: None,
            receipts: None,
            receipt_problem: None,
        })
    }

    /// The same enforcer for another request at the same time, over the same connections.
    pub(crate) fn another(&self) -> Self {
        Self {
            access: Arc::clone(&self.access),
            id: self.id.clone(),
            tenant: self.tenant.clone(),
            keys: EnforcerKeys::from_secret(&self.keys.secret()),
            approvers: self.approvers.clone(),
            operators: self.operators.clone(),
            file: self.file.clone(),
            orders_read_at: None,
            receipts: None,
            receipt_problem: None,
        }
    }

    pub fn id(&self) -> &EnforcerId {
        &self.id
    }

    /// The approvers that this enforcer is paired with.
    pub fn approvers(&self) -> &[ApproverRecord] {
        &self.approvers
    }

    /// The people who work with this agent, as approvers said at pairing. None: nobody said.
    pub fn operators(&self) -> Option<&[ApproverId]> {
        self.operators.as_deref()
    }

    pub fn client(&self) -> &GatewayClient {
        &self.access.client
    }

    /// A check of the gateway's log against what this enforcer has seen of it.
    pub fn log_check(&self, deadline: Instant) -> LogCheck<'_> {
        LogCheck {
            client: self.client(),
            tenant: &self.tenant,
            file: &self.file,
            now: self.access.now(),
            deadline,
        }
    }

    pub(super) fn approver(&self, id: &str) -> Option<&ApproverRecord> {
        self.approvers.iter().find(|record| record.id == id)
    }

    /// Takes over what other programs have learned since: a pairing that ended, a device that was
    /// revoked.
    pub(super) fn reload(&mut self) -> Result<()> {
        let profile = self.file.load_enforcer()?;
        self.operators = profile.operators()?;
        self.approvers = profile.approvers;
        Ok(())
    }

    /// Changes the records in the profile's file, and takes over what is there then.
    pub(super) fn update(
        &mut self,
        change: impl FnOnce(&mut EnforcerProfile) -> Result<()>,
    ) -> Result<()> {
        let profile = self.file.update(|profile: &mut Profile| {
            let enforcer = self.file.require(profile.enforcer.as_mut(), ENFORCER)?;
            change(enforcer)?;
            self.file.merge_learned(&mut enforcer.approvers)?;
            Ok::<_, ClientError>(enforcer.clone())
        })?;
        self.operators = profile.operators()?;
        self.approvers = profile.approvers;
        Ok(())
    }

    /// Ends a pairing, here and at the gateway. It ends here even if the call to the gateway fails.
    pub async fn unpair(&mut self, approver: &str) -> Result<bool> {
        let Some(record) = self.approver(approver).cloned() else {
            return Ok(false);
        };
        self.update(|profile| {
            profile.approvers.retain(|record| record.id != approver);
            Ok(())
        })?;
        self.access.revoke_pairing(&record.routing_token).await?;
        Ok(true)
    }
}
