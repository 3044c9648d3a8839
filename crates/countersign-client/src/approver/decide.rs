//! Deciding: sign what a person chose, send it, and see what becomes of it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::inbox::InboxItem;
use super::{Approver, deadline};
use crate::error::ClientError;
use crate::gateway::{GatewayCall, path};
use crate::profile::EnforcerRecord;
use crate::record::DecisionRecord;
use crate::shell::wrappers::hides_what_runs;
use crate::shell::{chooses_something, plain_words};
use crate::{random, wire};
use countersign_e2e::{
    ArtifactHints, DecisionContent, DecisionScope, GrantMatch, MAX_GRANT_LIFETIME, OpenedArtifact,
    OutcomeEffect, PlainArtifact, reject_unopened, sign_decision, verify_outcome,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::json::{self, JsonNode, JsonValue};
use countersign_protocol::timestamp::Timestamp;

/// How long a rejection of something that could not be opened counts: the time beside it may be a lie.
const REJECTION_LIFETIME: Duration = Duration::from_secs(60 * 60);
const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What a person chose.
#[derive(Debug, Clone)]
pub struct ApproverChoice {
    pub verdict: Verdict,
    pub scope: DecisionScope,
    /// How long a scope beyond `once` lasts, at most 24 hours.
    pub lasts: Option<Duration>,
    pub hints: ArtifactHints,
}

/// A decision that the gateway has accepted.
#[derive(Debug, Clone)]
pub struct AcceptedDecision {
    pub verdict: Verdict,
    /// The signed body, byte for byte.
    pub body: String,
    pub expires_at: Timestamp,
}

/// The source of the news that the enforcer got a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryConfirmation {
    /// Nobody yet.
    Missing,
    /// The gateway alone.
    ByGateway,
    /// The enforcer itself, by its signature, with what it did.
    ByEnforcer(OutcomeEffect),
    /// The gateway serves an outcome that the enforcer did not sign about this decision.
    Forged,
}

/// One of the actions that an enforcer offers in an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedAction {
    pub id: String,
    pub caption: String,
    pub verdict: Verdict,
}

/// The actions that an artifact offers, if any. What is not understood offers nothing.
pub fn requested_actions(artifact: &PlainArtifact) -> Vec<RequestedAction> {
    let node = json::parse(artifact.text().as_bytes());
    let actions = node.ok().and_then(|node| read_actions(&node));
    actions.unwrap_or_default()
}

fn read_actions(artifact: &JsonNode<'_>) -> Option<Vec<RequestedAction>> {
    let extensions = artifact.as_object()?.get("extensions")?.as_object()?;
    // The name of the protocol is configured at the gateway, and stands between the two.
    let mut extensions = extensions.iter();
    let wanted = extensions.find(|member| {
        member.name.starts_with("org.") && member.name.ends_with(".requestedActions")
    })?;
    let JsonValue::Array(actions) = &wanted.node.as_object()?.get("actions")?.value else {
        return None;
    };
    let read = |node: &JsonNode<'_>| {
        let action = node.as_object()?;
        let text = |name| Some(action.get(name)?.as_str()?.to_owned());
        let decision = text("decision")?;
        Some(RequestedAction {
            id: text("id")?,
            caption: text("caption")?,
            verdict: (Verdict::ALL.into_iter()).find(|verdict| verdict.as_str() == decision)?,
        })
    };
    actions.iter().map(read).collect()
}

impl Approver {
    pub(super) fn after(&self, time: Duration) -> Timestamp {
        let time = time.try_into().unwrap_or(time::Duration::MAX);
        Timestamp::from(self.clock.now().inner().saturating_add(time))
    }

    /// Signs a choice about an item. Only what was opened can be approved.
    fn sign(
        &self,
        item: &InboxItem,
        choice: &ApproverChoice,
    ) -> Result<(String, Timestamp), ClientError> {
        let opened = match (&item.content, choice.verdict) {
            (Ok(opened), _) => opened,
            (Err(_), Verdict::Reject) => return self.sign_unopened(item, choice),
            (Err(unopened), Verdict::Approve) => {
                return Err(ClientError::NotApprovable(unopened.to_string()));
            }
        };
        let hints = &choice.hints;
        if let Some(id) = &hints.action_id {
            check_action(opened, id, choice.verdict)?;
        }
        if let Some(GrantMatch::Prefix(words)) = &hints.grant {
            check_prefix(opened.artifact(), words)?;
        }
        let expires_at = match (choice.scope, choice.lasts) {
            (DecisionScope::Once, None) => opened.artifact().expires_at(),
            (DecisionScope::Once, Some(_)) => {
                return Err(ClientError::Choice(
                    "a time is for scopes beyond this request",
                ));
            }
            (_, Some(lasts)) if lasts <= MAX_GRANT_LIFETIME && hints.grant.is_some() => {
                self.after(lasts)
            }
            (_, Some(lasts)) if lasts > MAX_GRANT_LIFETIME => {
                return Err(ClientError::Choice("a permission lasts at most 24 hours"));
            }
            (DecisionScope::Timebox | DecisionScope::Session, _) => {
                return Err(ClientError::Choice(
                    "a permission beyond this request needs to say what it permits, and for how long",
                ));
            }
        };
        let ruling = DecisionContent {
            verdict: choice.verdict,
            scope: choice.scope,
            expires_at,
            hints: hints.clone(),
        };
        let body = sign_decision(opened, &ruling, &self.keys, &mut random)?;
        Ok((body, expires_at))
    }

    fn sign_unopened(
        &self,
        item: &InboxItem,
        choice: &ApproverChoice,
    ) -> Result<(String, Timestamp), ClientError> {
        let Some(hash) = item.artifact_hash else {
            let problem = "it has no hash that could be rejected".to_owned();
            return Err(ClientError::NotApprovable(problem));
        };
        let record = (item.enforcer_id.as_ref()).and_then(|id| self.enforcer(id.as_str()));
        let enforcer = record.as_ref().map(EnforcerRecord::pinned).transpose()?;
        let expires_at = self.after(REJECTION_LIFETIME);
        let subject = (&item.request_id, item.repo_ref.as_str());
        let parties = (&self.keys, enforcer.as_ref());
        let hints = choice.hints.clone();
        let body = reject_unopened(subject, hash, expires_at, hints, parties, &mut random)?;
        Ok((body, expires_at))
    }

    /// Signs and sends a decision.
    pub async fn decide(
        &self,
        item: &InboxItem,
        choice: &ApproverChoice,
    ) -> Result<AcceptedDecision, ClientError> {
        let (body, expires_at) = self.sign(item, choice)?;
        let envelope = wire::envelope(
            &self.clock,
            "decision.submit",
            &item.request_id,
            self.sender(),
            &body,
        )?;
        // The same decision again changes nothing.
        let call = GatewayCall::post("/v1/decisions", envelope);
        let sent = self.client.expect(&call, &[200], deadline()).await;
        sent.map_err(|error| match error.code() {
            Some("SIGNATURE_INVALID" | "KEY_REVOKED") => ClientError::RefusedAfterSigning,
            Some("EXPIRED") => ClientError::ExpiredAfterSigning,
            Some("ALREADY_DECIDED") => ClientError::AlreadyDecided,
            Some("NOT_FOUND") => ClientError::GoneAfterSigning,
            _ => error,
        })?;
        Ok(AcceptedDecision {
            verdict: choice.verdict,
            body,
            expires_at,
        })
    }

    /// Waits until the gateway calls the decision delivered, then verifies the enforcer's outcome. `Missing` if that takes longer than
    /// `time`.
    pub async fn delivered(
        &self,
        item: &InboxItem,
        decided: &AcceptedDecision,
        time: Duration,
    ) -> Result<DeliveryConfirmation, ClientError> {
        let request_id = &item.request_id;
        let call = GatewayCall::get(path(&["v1", "exchanges", request_id.as_str()]));
        let until = Instant::now() + time;
        let mut pause = FIRST_POLL_INTERVAL;
        loop {
            let answer = self.client.expect(&call, &[200], deadline()).await?;
            let node = wire::parse(&answer.body)?;
            let message = wire::PushedMessage::read(&node)?;
            let body = message.body.as_object();
            let member = |name| body.and_then(|body| body.get(name));
            if member("decision").is_none_or(|node| node.raw != decided.body) {
                return Err(ClientError::answer("the decision that was sent"));
            }
            if member("state").and_then(JsonNode::as_str) == Some("delivered") {
                return self.confirmation(item, decided).await;
            }
            if Instant::now() + pause >= until {
                return Ok(DeliveryConfirmation::Missing);
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
    }

    /// The outcome of a decision that the gateway calls delivered.
    async fn confirmation(
        &self,
        item: &InboxItem,
        decided: &AcceptedDecision,
    ) -> Result<DeliveryConfirmation, ClientError> {
        let Ok(opened) = &item.content else {
            return Ok(DeliveryConfirmation::ByGateway);
        };
        let artifact = opened.artifact();
        if artifact.outcome_key().is_none() {
            return Ok(DeliveryConfirmation::ByGateway);
        }
        let request = path(&["v1", "exchanges", item.request_id.as_str(), "outcome"]);
        let answer = (self.client)
            .expect(&GatewayCall::get(request), &[200, 404], deadline())
            .await?;
        if answer.status == 404 {
            return Ok(DeliveryConfirmation::ByGateway);
        }
        let node = wire::parse(&answer.body)?;
        let body = wire::PushedMessage::read(&node)?.body.as_object();
        let outcome = body.and_then(|body| body.get("outcome"));
        let outcome = outcome.and_then(JsonNode::as_str);
        let outcome = outcome.ok_or_else(|| ClientError::answer("an outcome"))?;
        let decision = json::parse(decided.body.as_bytes()).map_err(ClientError::answer)?;
        let enforcer = opened.enforcer().id();
        let verified = verify_outcome(outcome, artifact, &self.tenant, enforcer, &decision);
        Ok(match verified {
            Ok(statement) => DeliveryConfirmation::ByEnforcer(statement.effect),
            Err(_) => DeliveryConfirmation::Forged,
        })
    }

    /// A decision as a file that can be verified offline. Only of what was opened: the file has the artifact.
    pub async fn record(
        &self,
        opened: &OpenedArtifact,
        decided: &AcceptedDecision,
    ) -> DecisionRecord {
        // They let others verify it who know another device of this approver. Without them it is still complete.
        let statements = self.statements().await.unwrap_or_default();
        DecisionRecord::new(
            (&self.tenant, &self.id),
            opened.enforcer().id(),
            opened.artifact(),
            &decided.body,
            &self.bundle,
            statements,
        )
    }
}

fn check_action(opened: &OpenedArtifact, id: &str, verdict: Verdict) -> Result<(), ClientError> {
    let actions = requested_actions(opened.artifact());
    match actions.iter().find(|action| action.id == id) {
        Some(action) if action.verdict == verdict => Ok(()),
        Some(_) => Err(ClientError::Choice(
            "this action is for the opposite decision",
        )),
        None => Err(ClientError::Choice(
            "the request offers no action of this id",
        )),
    }
}

/// A grant by prefix is for the command that was seen, and others like it.
fn check_prefix(artifact: &PlainArtifact, prefix: &[String]) -> Result<(), ClientError> {
    let node = json::parse(artifact.text().as_bytes());
    let words = node.ok().and_then(|node| read_words(&node));
    let Some(words) = words else {
        return Err(ClientError::Choice(
            "this is no command of plain words, so no prefix covers it; permit --grant same, or this once",
        ));
    };
    if hides_what_runs(&words) {
        return Err(ClientError::Choice(
            "later words of this command say what runs, so no prefix covers it; permit --grant same, or this once",
        ));
    }
    let Some(later) = words.strip_prefix(prefix) else {
        return Err(ClientError::Choice(
            "the command does not begin with these words; enforcers would not keep this grant",
        ));
    };
    let program = prefix.first().map_or("", String::as_str);
    if later.iter().any(|word| chooses_something(program, word)) {
        return Err(ClientError::Choice(
            "a later word of this command chooses a program, a file, a directory or a configuration; permit more words, --grant same, or this once",
        ));
    }
    Ok(())
}

/// The words of a command; `None` if a shell could make something else of it.
fn read_words(artifact: &JsonNode<'_>) -> Option<Vec<String>> {
    let payload = artifact.as_object()?.get("payload")?.as_object()?;
    if let Some(argv) = payload.get("argv") {
        let JsonValue::Array(argv) = &argv.value else {
            return None;
        };
        let words = argv.iter().map(|word| word.as_str().map(str::to_owned));
        return words.collect();
    }
    plain_words(payload.get("command")?.as_str()?)
}
