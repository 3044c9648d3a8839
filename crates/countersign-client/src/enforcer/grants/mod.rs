//! Grants: permissions beyond one request. Each use is verified from the signature up, logged, and
//! reported. If anything is unclear there is no grant, and the enforcer sends a request.

mod file;
mod subject;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::file::{GrantFile, StoredGrant};
pub use self::subject::GrantSubject;
use super::approval_request::AcceptedApproval;
use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::wire;
use countersign_e2e::{
    self as e2e, DeviceTrust, Grant, GrantOutcome, OwnRequest, PlainArtifact, accept_again,
};
use countersign_protocol::id::{ApproverId, SessionId, TextId as _};

/// The gateway has this long to take the report of a use.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// A grant for a larger artifact is not kept: the file has up to 200 of them.
const MAX_ARTIFACT_BYTES: usize = 64 << 10;
const DAMAGED: e2e::Error = e2e::Error::NoGrant("its record is damaged");

/// A grant that lets something happen now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedGrant {
    /// The request that it was given with.
    pub request_id: String,
    pub approver: ApproverId,
    pub grant: Grant,
}

/// A grant as it is kept.
#[derive(Debug)]
pub struct KeptGrant {
    pub request_id: String,
    pub approver: String,
    pub accepted_at: String,
    pub session: Option<String>,
    /// Whether its session has ended. It counts again if that session goes on.
    pub is_suspended: bool,
    pub uses: u64,
    pub used_at: Option<String>,
    /// `None` if the record is damaged.
    pub subject: Option<GrantSubject>,
    /// The permission, or why it is not used.
    pub standing: Result<Grant, e2e::Error>,
}

impl Enforcer {
    fn grant_file(&self) -> GrantFile {
        GrantFile::beside(&self.file)
    }

    /// Keeps the permission of an approval beyond this once; `None` if it has none.
    pub fn keep(&self, accepted: &AcceptedApproval) -> Result<Option<Grant>> {
        let GrantOutcome::Given(grant) = &accepted.approval.grant else {
            return Ok(None);
        };
        let artifact = &accepted.artifact;
        let Some((subject, session)) = GrantSubject::of_artifact(artifact) else {
            return Ok(None);
        };
        // Otherwise the approver was shown something else than this permits.
        let is_fitting = subject.permits(&grant.matches, &subject);
        let is_sessionless = grant.session_only && session.is_none();
        if !is_fitting || is_sessionless || artifact.text().len() > MAX_ARTIFACT_BYTES {
            return Ok(None);
        }
        let stored = StoredGrant {
            request_id: artifact.request_id().to_string(),
            artifact: artifact.text().to_owned(),
            accepted_at: accepted.accepted_at.to_string(),
            until: grant.until.to_string(),
            approver_id: accepted.approval.approver.to_string(),
            session_id: (session.filter(|_| grant.session_only)).map(|it| it.to_string()),
            prefix: None,
            form: Some(grant.matches.name().to_owned()),
            suspended: false,
            uses: 0,
            used_at: None,
            decision: accepted.decision.clone(),
        };
        if self.is_ended(&stored.approver_id, &stored.request_id)? {
            return Ok(None);
        }
        self.grant_file().update(self.access.now(), |grants| {
            grants.retain(|other| other.request_id != stored.request_id);
            grants.push(stored);
        })?;
        Ok(Some(grant.clone()))
    }

    /// A grant that permits `subject` in this session of the agent, verified, logged and reported.
    /// An error also means that there is no grant, and that somebody should hear of it.
    pub async fn granted(
        &mut self,
        subject: &GrantSubject,
        session: Option<&SessionId>,
        deadline: Instant,
    ) -> Result<Option<UsedGrant>> {
        self.granted_by(None, subject, session, deadline).await
    }

    /// The same, of one approver only.
    pub async fn granted_by(
        &mut self,
        approver: Option<&str>,
        subject: &GrantSubject,
        session: Option<&SessionId>,
        deadline: Instant,
    ) -> Result<Option<UsedGrant>> {
        let file = self.grant_file();
        let grants = file.load()?;
        if grants.is_empty() {
            return Ok(None);
        }
        // Read before the clock: other programs write meanwhile.
        let written = file.written_at();
        let now = self.access.now();
        if written.is_some_and(|at| at > now.inner()) {
            return Ok(None);
        }
        // Once it is seen to have ended, no clock brings it back.
        let has_ended = |grant: &StoredGrant| grant.until().is_none_or(|until| until <= now);
        if grants.iter().any(has_ended) {
            file.update(now, |_| ())?;
        }
        for stored in grants.iter().filter(|stored| !has_ended(stored)) {
            let asked = approver.is_none_or(|only| only == stored.approver_id);
            let Some(signed) = (stored.artifact()).filter(|_| asked && !stored.suspended) else {
                continue;
            };
            let Some((permitted, own_session)) = GrantSubject::of_artifact(&signed) else {
                continue;
            };
            let is_same = permitted == *subject;
            let is_for_same = stored.form.as_deref() == Some("same");
            if !is_same && (is_for_same || !permitted.is_related(subject)) {
                continue;
            }
            let asked = std::slice::from_ref(&stored.approver_id);
            let devices = match self.devices_of(asked, false, deadline).await {
                Err(ClientError::Unpaired { .. }) => continue,
                devices => devices?,
            };
            let Ok(grant) = self.verify(stored, &signed, &devices) else {
                continue;
            };
            let in_session = own_session.is_some() && own_session.as_ref() == session;
            let is_permitted = permitted.permits(&grant.matches, subject);
            if !is_permitted || (grant.session_only && !in_session) {
                continue;
            }
            let Some(approver) = ApproverId::parse(&stored.approver_id) else {
                continue;
            };
            // Somebody may have ended it since, or paused the agent.
            self.read_orders(deadline).await?;
            if self.pause(session)?.is_some() {
                return Ok(None);
            }
            let used = UsedGrant {
                request_id: stored.request_id.clone(),
                approver,
                grant,
            };
            let Some(uses) = self.count_use(stored)? else {
                continue;
            };
            file.log(&self.line(&used, subject, session))?;
            self.report_use(&used, uses, deadline).await;
            return Ok(Some(used));
        }
        Ok(None)
    }

    /// How often it was used, this time included; `None` if it has ended meanwhile.
    fn count_use(&self, stored: &StoredGrant) -> Result<Option<u64>> {
        let now = self.access.now();
        if self.is_ended(&stored.approver_id, &stored.request_id)? {
            self.delete_grant(&stored.request_id)?;
            return Ok(None);
        }
        self.grant_file().update(now, |grants| {
            let mut kept = grants.iter_mut();
            let found = kept.find(|it| it.request_id == stored.request_id && !it.suspended)?;
            found.uses += 1;
            found.used_at = Some(now.to_string());
            Some(found.uses)
        })
    }

    /// The grant of a stored decision about `signed`, with these devices in force.
    fn verify(
        &self,
        stored: &StoredGrant,
        signed: &PlainArtifact,
        devices: &[DeviceTrust],
    ) -> Result<Grant, e2e::Error> {
        let own = OwnRequest::of(signed, self.id.clone());
        let accepted_at = stored.accepted_at().ok_or(DAMAGED)?;
        let node = wire::parse(stored.decision.as_bytes()).map_err(|_| DAMAGED)?;
        let devices: Vec<_> = devices.iter().collect();
        let now = self.access.now();
        if accepted_at > now {
            return Err(e2e::Error::NoGrant("it is from the future"));
        }
        accept_again(&node, &own, &self.keys, &devices, (accepted_at, now))
    }

    /// The line of the log. It has no command and no path.
    fn line(&self, used: &UsedGrant, subject: &GrantSubject, session: Option<&SessionId>) -> Value {
        json!({
            "at": self.access.now(),
            "grant": used.request_id,
            "approverId": used.approver,
            "match": used.grant.matches.name(),
            "until": used.grant.until,
            "tool": subject.tool(),
            "act": subject.hash(),
            "sessionId": session,
        })
    }

    /// For people to read. A use does not depend on the report; the log has it either way. Each
    /// grant has a session of its own there, because the agent's may be closed.
    async fn report_use(&self, used: &UsedGrant, uses: u64, deadline: Instant) {
        let payload = json!({
            "kind": "grant.use",
            "requestId": used.request_id,
            "approverId": used.approver,
            "match": used.grant.matches.name(),
            "until": used.grant.until,
            "uses": uses,
        });
        self.report_about(&used.request_id, &payload, deadline)
            .await;
    }

    /// Says that a grant is kept, for people to read.
    pub async fn report_kept(&self, accepted: &AcceptedApproval, grant: &Grant) {
        let request_id = accepted.artifact.request_id().as_str();
        let payload = json!({
            "kind": "grant.keep",
            "requestId": request_id,
            "approverId": accepted.approval.approver,
            "match": grant.matches.name(),
            "until": grant.until,
        });
        self.report_about(request_id, &payload, Instant::now() + REPORT_TIMEOUT)
            .await;
    }

    async fn report_about(&self, request_id: &str, payload: &Value, deadline: Instant) {
        if let Ok(session) = self.session("grant", request_id) {
            let deadline = deadline.min(Instant::now() + REPORT_TIMEOUT);
            let _unreported = self.snapshot(&session, payload, deadline).await;
        }
    }

    /// The grants that are kept, verified as far as this is possible without the gateway.
    pub fn grants(&self) -> Result<Vec<KeptGrant>> {
        let grants = self.grant_file().load()?;
        let list = grants.into_iter().map(|stored| {
            let trust = self.known_trust(&stored.approver_id)?;
            let signed = stored.artifact();
            let subject = signed.as_ref().and_then(GrantSubject::of_artifact);
            let standing = match &signed {
                Some(signed) => self.verify(&stored, signed, trust.as_slice()),
                None => Err(DAMAGED),
            };
            Ok(KeptGrant {
                standing,
                request_id: stored.request_id,
                approver: stored.approver_id,
                accepted_at: stored.accepted_at,
                session: stored.session_id,
                is_suspended: stored.suspended,
                uses: stored.uses,
                used_at: stored.used_at,
                subject: subject.map(|(subject, _)| subject),
            })
        });
        list.collect()
    }

    /// Forgets the grant that was given with this request.
    pub fn delete_grant(&self, request_id: &str) -> Result<()> {
        self.retain(|grant| grant.request_id != request_id)
    }

    /// The same, if this approver gave it.
    pub(super) fn delete_grant_of(&self, approver: &str, request_id: &str) -> Result<()> {
        self.retain(|grant| grant.request_id != request_id || grant.approver_id != approver)
    }

    /// Forgets every grant, also those of a file that cannot be read.
    pub fn delete_all_grants(&self) -> Result<()> {
        self.grant_file().remove()
    }

    /// Ends the grants of a session for good.
    pub fn delete_session_grants(&self, session: &SessionId) -> Result<()> {
        let ended = self.session_grants(session)?;
        self.retain(|grant| !ended.contains(&grant.request_id))
    }

    /// The session has ended, or it goes on: its grants count only while it runs.
    pub(super) fn suspend_grants(&self, session: &SessionId, suspended: bool) -> Result<()> {
        let own = self.session_grants(session)?;
        if own.is_empty() {
            return Ok(());
        }
        self.grant_file().update(self.access.now(), |grants| {
            for grant in grants {
                if own.contains(&grant.request_id) {
                    grant.suspended = suspended;
                }
            }
        })
    }

    /// Session and scope of a grant are read from the signed texts.
    fn session_grants(&self, session: &SessionId) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for stored in self.grant_file().load()? {
            let signed = stored.artifact();
            let own = signed.as_ref().and_then(GrantSubject::of_artifact);
            let (Some(signed), Some((_, Some(own)))) = (signed, own) else {
                continue;
            };
            let trust = self.known_trust(&stored.approver_id)?;
            let standing = self.verify(&stored, &signed, trust.as_slice());
            let lasts_longer = standing.is_ok_and(|grant| !grant.session_only);
            if own == *session && !lasts_longer {
                found.push(stored.request_id);
            }
        }
        Ok(found)
    }

    /// An approver's devices, as far as this enforcer knows.
    fn known_trust(&self, approver: &str) -> Result<Option<DeviceTrust>> {
        let record = self.approver(approver);
        let trust = record.map(|record| record.trust(self.tenant.clone()));
        Ok(trust.transpose()?)
    }

    fn retain(&self, keep: impl Fn(&StoredGrant) -> bool) -> Result<()> {
        let file = self.grant_file();
        // Without grants no file is created.
        if file.load()?.is_empty() {
            return Ok(());
        }
        file.update(self.access.now(), |grants| grants.retain(keep))
    }
}
