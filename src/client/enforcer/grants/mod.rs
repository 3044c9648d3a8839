//! Grants: what a person has permitted beyond one request. Each use is verified from the signature up, logged, and reported. In
//! doubt there is no grant, and the enforcer asks.

mod file;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::file::{GrantFile, StoredGrant};
use super::Enforcer;
use super::question::Accepted;
use crate::agent::wrappers::hides_what_runs;
use crate::client::error::ClientError;
use crate::client::wire;
use crate::e2e::{self, DeviceTrust, Grant, GrantMatch, GrantOutcome, accept_again};
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::id::{ApproverId, SessionId, TextId as _};

/// The gateway has this long to take the report of a use.
const REPORT_WITHIN: Duration = Duration::from_secs(2);
/// Of a longer command only the tool is kept, for listing.
const MAX_SHOWN_BYTES: usize = 4 << 10;

/// What is to happen, as far as grants are concerned.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    /// What would act: a tool of the agent, or the program's path. No grant reaches from one to another.
    pub tool: String,
    /// As in the question. No grant reaches from one repository to another.
    pub repo_ref: String,
    /// Everything that makes a difference.
    pub input: Value,
    /// The words of the command, if it is one of plain words: no operators, substitutions or redirections.
    pub words: Option<Vec<String>>,
}

impl Act {
    fn hash(&self) -> String {
        let whole = json!([self.tool, self.repo_ref, self.input]).to_string();
        Sha256Hex::of(whole.as_bytes()).to_string()
    }

    /// Whether it is a plain command that begins with `prefix`, word for word.
    fn starts_with(&self, prefix: &[String]) -> bool {
        self.words.as_ref().is_some_and(|words| {
            !prefix.is_empty() && words.starts_with(prefix) && !hides_what_runs(words)
        })
    }
}

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
    pub repo_ref: String,
    pub session: Option<String>,
    pub tool: String,
    /// What was asked, if it was a command of plain words.
    pub words: Option<Vec<String>>,
    /// What it permits, or why nothing.
    pub standing: Result<Grant, e2e::Error>,
}

impl Enforcer {
    fn grant_file(&self) -> GrantFile {
        GrantFile::beside(&self.file)
    }

    /// Keeps what an approval of `act` permits beyond this once, if it does. `None` if there is nothing to keep.
    pub fn keep(
        &self,
        accepted: &Accepted,
        act: &Act,
        session: Option<&SessionId>,
    ) -> Result<Option<Grant>, ClientError> {
        let GrantOutcome::Given(grant) = &accepted.approval.grant else {
            return Ok(None);
        };
        let prefix = match &grant.matches {
            GrantMatch::Same => None,
            // Whoever gave it has seen something else than what it would permit.
            GrantMatch::Prefix(words) if !act.starts_with(words) => return Ok(None),
            GrantMatch::Prefix(words) => Some(words.clone()),
        };
        if grant.session_only && session.is_none() {
            return Ok(None);
        }
        let own = &accepted.request;
        let shown =
            |words: &&Vec<String>| words.iter().map(String::len).sum::<usize>() <= MAX_SHOWN_BYTES;
        let stored = StoredGrant {
            request_id: own.request_id.to_string(),
            artifact_hash: own.artifact_hash.to_string(),
            repo_ref: own.repo_ref.clone(),
            expires_at: own.expires_at.to_string(),
            accepted_at: accepted.accepted_at.to_string(),
            until: grant.until.to_string(),
            approver_id: accepted.approval.approver.to_string(),
            session_id: session
                .filter(|_| grant.session_only)
                .map(ToString::to_string),
            tool: act.tool.clone(),
            act: act.hash(),
            words: act.words.as_ref().filter(shown).cloned(),
            prefix,
            decision: accepted.decision.clone(),
        };
        self.grant_file().update(self.clock.now(), |grants| {
            grants.retain(|other| other.request_id != stored.request_id);
            grants.push(stored);
        })?;
        Ok(Some(grant.clone()))
    }

    /// A grant that permits `act` in this session of the agent, verified, logged and reported. An error means the same as
    /// `None`, ask; and that somebody should hear of it.
    pub async fn granted(
        &mut self,
        act: &Act,
        session: Option<&SessionId>,
        deadline: Instant,
    ) -> Result<Option<UsedGrant>, ClientError> {
        self.granted_by(None, act, session, deadline).await
    }

    /// The same, of one approver only.
    pub async fn granted_by(
        &mut self,
        approver: Option<&str>,
        act: &Act,
        session: Option<&SessionId>,
        deadline: Instant,
    ) -> Result<Option<UsedGrant>, ClientError> {
        let file = self.grant_file();
        let grants = file.load()?;
        if grants.is_empty() {
            return Ok(None);
        }
        // Looked at before the clock: other programs write meanwhile.
        let written = file.written_at();
        let now = self.clock.now();
        if written.is_some_and(|at| at > now.inner()) {
            return Ok(None);
        }
        // Once it is seen to have ended, no clock brings it back.
        let has_ended = |grant: &StoredGrant| grant.until().is_none_or(|until| until <= now);
        if grants.iter().any(has_ended) {
            file.update(now, |_| ())?;
        }
        let hash = act.hash();
        for stored in grants.iter().filter(|stored| !has_ended(stored)) {
            let asked = approver.is_none_or(|only| only == stored.approver_id);
            let likely = match &stored.prefix {
                None => stored.act == hash,
                Some(words) => act.starts_with(words),
            };
            if !asked || !likely {
                continue;
            }
            let asked = std::slice::from_ref(&stored.approver_id);
            let devices = match self.devices_of(asked, false, deadline).await {
                Err(ClientError::Unpaired { .. }) => continue,
                devices => devices?,
            };
            let Ok(grant) = self.verify(stored, &devices) else {
                continue;
            };
            if !permits(&grant, stored, (act, &hash), session) {
                continue;
            }
            let Some(approver) = ApproverId::parse(&stored.approver_id) else {
                continue;
            };
            let used = UsedGrant {
                request_id: stored.request_id.clone(),
                approver,
                grant,
            };
            file.log(&self.line(&used, act, &hash, session))?;
            self.report_use(&used, session, deadline).await;
            return Ok(Some(used));
        }
        Ok(None)
    }

    /// What a stored decision still permits, with these devices in force.
    fn verify(&self, stored: &StoredGrant, devices: &[DeviceTrust]) -> Result<Grant, e2e::Error> {
        let damaged = || e2e::Error::NoGrant("its record is damaged");
        let own = stored.own_request(&self.id).ok_or_else(damaged)?;
        let accepted_at = stored.accepted_at().ok_or_else(damaged)?;
        let node = wire::parse(stored.decision.as_bytes()).map_err(|_| damaged())?;
        let devices: Vec<_> = devices.iter().collect();
        let now = self.clock.now();
        if accepted_at > now {
            return Err(e2e::Error::NoGrant("it is from the future"));
        }
        accept_again(&node, &own, &self.keys, &devices, (accepted_at, now))
    }

    /// What is logged and nothing more: no command, no path.
    fn line(&self, used: &UsedGrant, act: &Act, hash: &str, session: Option<&SessionId>) -> Value {
        json!({
            "at": self.clock.now(),
            "grant": used.request_id,
            "approverId": used.approver,
            "match": kind(&used.grant.matches),
            "until": used.grant.until,
            "tool": act.tool,
            "act": hash,
            "sessionId": session,
        })
    }

    /// For people to read. The gateway cannot undo a grant by not taking the report; the log has it either way.
    async fn report_use(&self, used: &UsedGrant, session: Option<&SessionId>, deadline: Instant) {
        let payload = json!({
            "kind": "grant.use",
            "requestId": used.request_id,
            "approverId": used.approver,
            "match": kind(&used.grant.matches),
            "until": used.grant.until,
        });
        let own = match session {
            Some(session) => Ok(session.clone()),
            None => self.session("grant", &used.request_id),
        };
        if let Ok(session) = own {
            let deadline = deadline.min(Instant::now() + REPORT_WITHIN);
            let _unreported = self.snapshot(&session, &payload, deadline).await;
        }
    }

    /// The grants that are kept, verified as far as this is possible without the gateway.
    pub fn grants(&self) -> Result<Vec<KeptGrant>, ClientError> {
        let grants = self.grant_file().load()?;
        let list = grants.into_iter().map(|stored| {
            let own = (self.approvers.iter()).find(|record| record.id == stored.approver_id);
            let trust = own
                .map(|record| record.trust(self.tenant.clone()))
                .transpose()?;
            let standing = self.verify(&stored, trust.as_slice());
            Ok(KeptGrant {
                standing,
                request_id: stored.request_id,
                approver: stored.approver_id,
                accepted_at: stored.accepted_at,
                repo_ref: stored.repo_ref,
                session: stored.session_id,
                tool: stored.tool,
                words: stored.words,
            })
        });
        list.collect()
    }

    /// Forgets the grant that was given with this request.
    pub fn forget_grant(&self, request_id: &str) -> Result<(), ClientError> {
        self.retain(|grant| grant.request_id != request_id)
    }

    /// Forgets every grant, also those of a file that cannot be read.
    pub fn forget_all_grants(&self) -> Result<(), ClientError> {
        self.grant_file().remove()
    }

    pub(super) fn forget_session(&self, session: &SessionId) -> Result<(), ClientError> {
        let ended = |grant: &StoredGrant| grant.session_id.as_deref() == Some(session.as_str());
        self.retain(|grant| !ended(grant))
    }

    fn retain(&self, keep: impl Fn(&StoredGrant) -> bool) -> Result<(), ClientError> {
        let file = self.grant_file();
        // Most often there are none: nothing is created for that.
        if file.load()?.is_empty() {
            return Ok(());
        }
        file.update(self.clock.now(), |grants| grants.retain(keep))
    }
}

fn permits(
    grant: &Grant,
    stored: &StoredGrant,
    (act, hash): (&Act, &str),
    session: Option<&SessionId>,
) -> bool {
    let matches = match &grant.matches {
        GrantMatch::Same => stored.act == hash,
        GrantMatch::Prefix(words) => {
            stored.tool == act.tool && stored.repo_ref == act.repo_ref && act.starts_with(words)
        }
    };
    let own = stored.session_id.as_deref();
    let in_session = own.is_some() && own == session.map(SessionId::as_str);
    matches && (in_session || !grant.session_only)
}

fn kind(matches: &GrantMatch) -> &'static str {
    match matches {
        GrantMatch::Same => "same",
        GrantMatch::Prefix(_) => "prefix",
    }
}
