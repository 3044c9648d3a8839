//! Where an approver is notified: adds, lists, removes and tests targets.

use std::sync::Arc;

use http::Uri;
use time::Duration;
use uuid::Uuid;

use super::keys::{DeliveryTarget, NotificationKeys};
use super::load::DeliveryLoad;
use super::send::{DeliveryOutcome, NotificationMessage, NotificationSender};
use super::web_push;
use crate::config::Config;
use crate::e2e::DeviceId;
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result, found};
use crate::gateway::identity::authenticate::random;
use crate::gateway::identity::caller::ApproverOrAdmin;
use crate::gateway::identity::secret::ClusterSecret;
use crate::gateway::limit::{BucketTable, RateClass, RateLimit};
use crate::protocol::error::NotificationError;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::json::JsonNode;
use crate::protocol::notification::{
    AddedNotification, MAX_NOTIFICATIONS, NewNotification, NotificationKind, NotificationLine,
    NotificationList, NotificationNotice, NotificationState, TestedNotification, WebhookSecret,
};
use crate::store::audit::AuditActor;
use crate::store::notifications::target::{AddFact, NewTarget, NotificationRow};

/// Tests of one target: each sends something.
const TESTS: RateLimit = RateLimit {
    per_second: 1,
    burst: 5,
};
const MAX_TESTED: usize = 10_000;
const SECRET_BYTES: usize = 32;

pub struct NotificationService {
    pub(super) context: Arc<GatewayContext>,
    pub(super) keys: NotificationKeys,
    pub(super) sender: NotificationSender,
    pub(super) load: DeliveryLoad,
    tests: BucketTable<(TenantId, Uuid)>,
}

/// Why this gateway sends nothing, if so.
pub fn off(config: &Config) -> Option<&'static str> {
    if !config.notifications.enabled {
        return Some("notifications.enabled is false");
    }
    let reason = "security.cluster_secret is not set";
    config.security.is_generated.then_some(reason)
}

/// A text that is no id is not found either.
fn notification_id(text: &str) -> Result<Uuid> {
    Uuid::try_parse(text).map_err(|_| Error::NotFound)
}

impl ApproverOrAdmin {
    /// The actor that changes where this approver is notified, for the audit log.
    fn changing(&self, approver: &ApproverId) -> Result<AuditActor> {
        match self {
            Self::Approver(caller) => {
                caller.speaking_for(approver)?;
                Ok(caller.actor(approver))
            }
            Self::Admin(caller) => Ok(caller.actor()),
        }
    }
}

impl NotificationService {
    pub(in crate::gateway) fn new(
        context: &Arc<GatewayContext>,
        secret: &ClusterSecret,
    ) -> Result<Self> {
        Ok(Self {
            context: Arc::clone(context),
            keys: NotificationKeys::new(secret)?,
            sender: NotificationSender::new(&context.config, &context.clock),
            load: DeliveryLoad::default(),
            tests: BucketTable::new(MAX_TESTED),
        })
    }

    pub(super) fn off(&self) -> Option<&'static str> {
        off(&self.context.config)
    }

    fn check_on(&self) -> Result<()> {
        match self.off() {
            Some(reason) => Err(NotificationError::Off { reason }.into()),
            None => Ok(()),
        }
    }

    /// Refuses a caller that may not change where this approver is notified.
    pub fn check_caller(&self, caller: &ApproverOrAdmin, approver: &ApproverId) -> Result<()> {
        caller.changing(approver)?;
        self.check_on()
    }

    /// Reads a target to be added.
    pub fn read(&self, document: &JsonNode<'_>) -> Result<NewNotification> {
        let new = NewNotification::parse(document)?;
        let (pointer, url) = new.url();
        if Uri::try_from(url.as_str()).is_err() {
            return Err(Error::invalid(pointer, "an https URL"));
        }
        if !self.sender.permits(url) {
            return Err(NotificationError::Address { pointer }.into());
        }
        if let NewNotification::WebPush { device, keys, .. } = &new {
            if DeviceId::parse(device).is_err() {
                let expected = "22 characters of base64url: the id of a device of this approver";
                return Err(Error::invalid("/deviceId", expected));
            }
            if !web_push::is_point(keys) {
                let expected = "65 bytes in base64url: an uncompressed point of P-256";
                return Err(Error::invalid("/keys/p256dh", expected));
            }
        }
        Ok(new)
    }

    /// Adds a target. Also returns whether it is new.
    pub async fn add(
        &self,
        caller: &ApproverOrAdmin,
        approver: &ApproverId,
        new: NewNotification,
    ) -> Result<(AddedNotification, bool)> {
        self.check_on()?;
        let (tenant, actor) = (&caller.origin().tenant, caller.changing(approver)?);
        let (kind, device) = (new.kind(), new.device().map(str::to_owned));
        let keep = matches!(new, NewNotification::Webhook { secret: None, .. });
        let target = match new {
            NewNotification::WebPush { endpoint, keys, .. } => {
                DeliveryTarget::WebPush { endpoint, keys }
            }
            NewNotification::Webhook { url, secret } => {
                let secret = match secret {
                    Some(secret) => secret,
                    None => WebhookSecret::new(&random::<SECRET_BYTES>()?),
                };
                DeliveryTarget::Webhook { url, secret }
            }
        };
        let stored = NewTarget {
            kind,
            device: device.as_deref(),
            url_hash: self.keys.url_hash(target.url()),
            target: &self.keys.seal(tenant, approver, &target)?,
            secret_check: self.keys.check,
            keep,
            host: target.url().authority(),
        };
        let store = &self.context.store.notifications;
        let fact = store.add_notification(&actor, tenant, approver, &stored);
        let (id, made, is_new) = match fact.await? {
            AddFact::Added(id) => (id, keep, true),
            AddFact::Renewed { id, kept } => (id, keep && !kept, false),
            AddFact::NoTenant => return Err(Error::NotFound),
            AddFact::NoDevice => return Err(NotificationError::NoDevice.into()),
            AddFact::TooMany => {
                let limit = MAX_NOTIFICATIONS;
                return Err(NotificationError::TooMany { limit }.into());
            }
        };
        let secret = match target {
            DeliveryTarget::Webhook { secret, .. } if made => Some(secret.as_str().to_owned()),
            _ => None,
        };
        let added = AddedNotification {
            notification_id: id,
            secret,
        };
        Ok((added, is_new))
    }

    /// Where an approver is notified, without anything secret.
    pub async fn list(
        &self,
        caller: &ApproverOrAdmin,
        approver: &ApproverId,
    ) -> Result<NotificationList> {
        if let ApproverOrAdmin::Approver(caller) = caller {
            caller.acting(Some(approver.clone()), "approverId")?;
        }
        let (tenant, reason) = (&caller.origin().tenant, self.off());
        let store = &self.context.store.notifications;
        let rows = store.notifications(tenant, approver, None).await?;
        let lines = rows.into_iter().map(|row| self.line(tenant, approver, row));
        Ok(NotificationList {
            approver_id: approver.clone(),
            enabled: reason.is_none(),
            reason,
            vapid_key: reason.is_none().then(|| self.keys.vapid_text()),
            notifications: lines.collect(),
        })
    }

    fn open(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        row: &NotificationRow,
    ) -> Option<DeliveryTarget> {
        let is_own = row.secret_check == self.keys.check;
        let target = || self.keys.open(tenant, approver, &row.url_hash, &row.target);
        is_own.then(target).flatten()
    }

    fn line(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        row: NotificationRow,
    ) -> NotificationLine {
        let target = self.open(tenant, approver, &row);
        let state = match (&target, row.disabled_at, row.failing_since) {
            (None, _, _) => NotificationState::Stale,
            (Some(_), Some(_), _) => NotificationState::Disabled,
            (Some(_), None, Some(_)) => NotificationState::Failing,
            (Some(_), None, None) => NotificationState::Active,
        };
        NotificationLine {
            notification_id: row.id,
            kind: row.kind,
            device_id: row.device,
            host: target.map(|target| target.url().authority().to_owned()),
            state,
            created_at: row.created_at,
            delivered_at: row.delivered_at,
            failing_since: row.failing_since,
            failure: row.failure,
            disabled_at: row.disabled_at,
        }
    }

    pub async fn remove(
        &self,
        caller: &ApproverOrAdmin,
        approver: &ApproverId,
        id: &str,
    ) -> Result<()> {
        let actor = caller.changing(approver)?;
        let id = notification_id(id)?;
        let store = &self.context.store.notifications;
        let removed =
            store.remove_notification(&actor, &caller.origin().tenant, approver, id, None);
        found(removed.await?)
    }

    /// Sends a test at once and returns the outcome. Enables a target that works, removes one that
    /// is gone.
    pub async fn test(
        &self,
        caller: &ApproverOrAdmin,
        approver: &ApproverId,
        id: &str,
    ) -> Result<TestedNotification> {
        let (tenant, actor) = (&caller.origin().tenant, caller.changing(approver)?);
        self.check_on()?;
        let id = notification_id(id)?;
        let store = &self.context.store.notifications;
        let rows = store.notifications(tenant, approver, Some(id)).await?;
        let row = rows.into_iter().next().ok_or(Error::NotFound)?;
        let target = self
            .open(tenant, approver, &row)
            .ok_or(NotificationError::Stale)?;
        if self.context.config.rates.enabled {
            let now = self.context.clock.now();
            let counted = self.tests.take(&(tenant.clone(), id), TESTS, now);
            counted.map_err(|wait| RateClass::Decision.throttled(TESTS, wait))?;
        }
        let now = self.context.clock.now().inner();
        let letter = NotificationMessage {
            approver,
            notice: NotificationNotice::Test,
            id: format!("{id}-test-{}", self.context.clock.operation_id().0),
            until: now.saturating_add(Duration::minutes(5)),
        };
        let outcome = self.sender.send(&self.keys, &target, &letter).await;
        match &outcome {
            DeliveryOutcome::Delivered(_) => {
                store.note_working(tenant, approver, id).await?;
            }
            DeliveryOutcome::Gone(_) if row.kind == NotificationKind::WebPush => {
                let why = Some("the push service says that it is gone");
                store
                    .remove_notification(&actor, tenant, approver, id, why)
                    .await?;
            }
            DeliveryOutcome::Gone(_) | DeliveryOutcome::Failed { .. } => {}
        }
        Ok(TestedNotification {
            delivered: matches!(outcome, DeliveryOutcome::Delivered(_)),
            status: outcome.status().map(|status| status.as_u16()),
            failure: match outcome {
                DeliveryOutcome::Delivered(_) => None,
                DeliveryOutcome::Gone(status) => Some(format!("the answer is {}", status.as_u16())),
                DeliveryOutcome::Failed { failure, .. } => Some(failure),
            },
        })
    }
}
