//! Decisions: sign a person's choice, send it, and follow its delivery.

use std::time::Duration;

use super::inbox::InboxRequest;
use super::requested_action::requested_actions;
use super::role::{Approver, POLL_PAUSE};
use crate::enforcer::GrantSubject;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, path};
use crate::log::note_decision;
use crate::profile::EnforcerRecord;
use crate::random::random;
use crate::record::DecisionRecord;
use crate::retry::poll;
use crate::shell::wrappers::hides_what_runs;
use crate::shell::{PatternProblem, chooses_something, fits, pattern_problem, plain_words};
use crate::wire;
use countersign_e2e::{
    ArtifactHints, DecisionContent, DecisionScope, GrantMatch, MAX_GRANT_LIFETIME, OpenedArtifact,
    OutcomeEffect, PlainArtifact, RuleDecider, RuleRefusal, TeamChain, WordPattern,
    reject_unopened, sign_decision, verify_outcome,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::json::{self, JsonNode};
use countersign_protocol::timestamp::Timestamp;

/// Of the rejection of a request that does not open: the time beside it may be a lie.
const REJECTION_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// A person's choice.
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
    Missing,
    ByGateway,
    /// By the enforcer's signature.
    ByEnforcer(OutcomeEffect),
    /// The gateway serves an outcome that the enforcer did not sign about this decision.
    Forged,
}

impl Approver {
    /// Signs a choice about a request. Only an opened request can be approved.
    fn sign(
        &self,
        request: &InboxRequest,
        choice: &ApproverChoice,
        teams: &[TeamChain],
    ) -> Result<(String, Timestamp)> {
        let opened = match (&request.content, choice.verdict) {
            (Ok(opened), _) => opened,
            (Err(_), Verdict::Reject) => return self.sign_unopened(request, choice),
            (Err(unopened), Verdict::Approve) => {
                return Err(ClientError::NotApprovable(unopened.to_string()));
            }
        };
        let hints = &choice.hints;
        if choice.verdict == Verdict::Approve {
            self.check_rule(opened, choice, teams)?;
        }
        if let Some(id) = &hints.action_id {
            check_action(opened, id, choice.verdict)?;
        }
        if let Some(answers) = &hints.answers {
            check_answers(opened.artifact(), answers.len())?;
        }
        match &hints.grant {
            Some(GrantMatch::Prefix(words)) => check_prefix(opened.artifact(), words)?,
            Some(GrantMatch::Words(pattern)) => check_pattern(opened.artifact(), pattern)?,
            Some(matches @ (GrantMatch::File | GrantMatch::Project)) => {
                check_edit(opened.artifact(), matches, choice.scope)?;
            }
            Some(GrantMatch::Same) | None => {}
        }
        let expires_at = match (choice.scope, choice.lasts) {
            (DecisionScope::Once, None) => opened.artifact().expires_at(),
            (DecisionScope::Once, Some(_)) => {
                let problem = "a duration is only for scopes beyond this request";
                return Err(ClientError::Choice(problem));
            }
            (_, Some(lasts)) if lasts <= MAX_GRANT_LIFETIME && hints.grant.is_some() => {
                self.access.after(lasts)
            }
            (_, Some(lasts)) if lasts > MAX_GRANT_LIFETIME => {
                return Err(ClientError::Choice("a grant lasts at most 24 hours"));
            }
            (DecisionScope::Timebox | DecisionScope::Session, _) => {
                return Err(ClientError::Choice(
                    "an approval beyond this request must say what it allows, and for how long",
                ));
            }
        };
        let ruling = DecisionContent {
            verdict: choice.verdict,
            scope: choice.scope,
            expires_at,
            hints: ArtifactHints {
                teams: teams.iter().map(TeamChain::head).collect(),
                ..hints.clone()
            },
        };
        let body = sign_decision(opened, &ruling, &self.keys, &mut random)?;
        Ok((body, expires_at))
    }

    /// Whether this approver may approve it by the rule of the request, with this comment. No
    /// enforcer keeps a grant that is given under a rule.
    fn check_rule(
        &self,
        opened: &OpenedArtifact,
        choice: &ApproverChoice,
        teams: &[TeamChain],
    ) -> Result<()> {
        let Some(rule) = opened.artifact().rule() else {
            return Ok(());
        };
        let (enforcer, reason) = (opened.enforcer().id(), choice.hints.reason.as_deref());
        let record = self.enforcer(enforcer.as_str());
        let operators = record.map(|record| record.operators()).transpose()?;
        let operators = operators.unwrap_or_default();
        let decider = RuleDecider {
            approver: &self.id,
            device: self.device_id(),
            operators: &operators,
            teams,
            now: self.now(),
        };
        let checked = rule.check_approval(enforcer, &decider, reason);
        checked.map_err(|refusal| match refusal {
            RuleRefusal::MissingComment => {
                ClientError::Choice("this approval needs a comment; say why with --reason")
            }
            refusal => ClientError::NotApprovable(refusal.to_string()),
        })?;
        if choice.scope != DecisionScope::Once {
            let problem = "the request has a rule, so an approval counts for this request only";
            return Err(ClientError::Choice(problem));
        }
        Ok(())
    }

    fn sign_unopened(
        &self,
        request: &InboxRequest,
        choice: &ApproverChoice,
    ) -> Result<(String, Timestamp)> {
        let Some(hash) = request.artifact_hash else {
            let problem = "it has no hash, so it cannot be rejected either".to_owned();
            return Err(ClientError::NotApprovable(problem));
        };
        let record = (request.enforcer_id.as_ref()).and_then(|id| self.enforcer(id.as_str()));
        let enforcer = record.as_ref().map(EnforcerRecord::pinned).transpose()?;
        let expires_at = self.access.after(REJECTION_LIFETIME);
        let subject = (&request.request_id, request.repo_ref.as_str());
        let parties = (&self.keys, enforcer.as_ref());
        let hints = choice.hints.clone();
        let body = reject_unopened(subject, hash, expires_at, hints, parties, &mut random)?;
        Ok((body, expires_at))
    }

    /// Signs and sends a decision.
    pub async fn decide(
        &self,
        request: &InboxRequest,
        choice: &ApproverChoice,
    ) -> Result<AcceptedDecision> {
        let opened = request.content.as_ref().ok();
        let rule = opened.and_then(|opened| opened.artifact().rule());
        let teams = match (Box::pin(self.teams_of(rule)).await, choice.verdict) {
            (Ok(teams), _) => teams,
            // A rejection stands without them.
            (Err(_), Verdict::Reject) => Vec::new(),
            (Err(error), Verdict::Approve) => return Err(error),
        };
        let (body, expires_at) = self.sign(request, choice, &teams)?;
        let (access, id) = (&self.access, &request.request_id);
        let envelope = access.envelope("decision.submit", id, &body)?;
        // The same decision again changes nothing.
        let call = GatewayCall::post("/v1/decisions", envelope);
        let sent = access.call(&call, &[200]).await;
        sent.map_err(|error| match error.code() {
            Some("SIGNATURE_INVALID" | "KEY_REVOKED") => ClientError::RefusedAfterSigning,
            Some("EXPIRED") => ClientError::ExpiredAfterSigning,
            Some("ALREADY_DECIDED") => ClientError::AlreadyDecided,
            Some("NOT_FOUND") => ClientError::GoneAfterSigning,
            _ => error,
        })?;
        note_decision(&self.file, &self.tenant, id, &body, self.now());
        Ok(AcceptedDecision {
            verdict: choice.verdict,
            body,
            expires_at,
        })
    }

    /// Waits until the gateway calls the decision delivered, then verifies the enforcer's outcome.
    /// `Missing` if that takes longer than `time`.
    pub async fn delivered(
        &self,
        request: &InboxRequest,
        decided: &AcceptedDecision,
        time: Duration,
    ) -> Result<DeliveryConfirmation> {
        let exchange = ["v1", "exchanges", request.request_id.as_str()];
        let state = poll(POLL_PAUSE, time, bool::clone, async || {
            let answer = self.access.get(&exchange).await?;
            let node = wire::parse(&answer.body)?;
            let body = wire::PushedMessage::read(&node)?.body;
            if wire::member(body, "decision").is_none_or(|node| node.raw != decided.body) {
                return Err(ClientError::answer("the decision that was sent"));
            }
            Ok(wire::text(body, "state") == Some("delivered"))
        });
        let is_delivered = state.await?;
        if is_delivered {
            return self.confirmation(request, decided).await;
        }
        Ok(DeliveryConfirmation::Missing)
    }

    /// The outcome of a decision that the gateway calls delivered.
    async fn confirmation(
        &self,
        request: &InboxRequest,
        decided: &AcceptedDecision,
    ) -> Result<DeliveryConfirmation> {
        let Ok(opened) = &request.content else {
            return Ok(DeliveryConfirmation::ByGateway);
        };
        let artifact = opened.artifact();
        if artifact.outcome_key().is_none() {
            return Ok(DeliveryConfirmation::ByGateway);
        }
        let outcome = path(&["v1", "exchanges", request.request_id.as_str(), "outcome"]);
        let call = GatewayCall::get(outcome);
        let answer = self.access.call(&call, &[200, 404]).await?;
        if answer.status == 404 {
            return Ok(DeliveryConfirmation::ByGateway);
        }
        let node = wire::parse(&answer.body)?;
        let outcome = wire::text(wire::PushedMessage::read(&node)?.body, "outcome");
        let outcome = outcome.ok_or_else(|| ClientError::answer("an outcome"))?;
        let decision = wire::parse(decided.body.as_bytes())?;
        let enforcer = opened.enforcer().id();
        let verified = verify_outcome(outcome, artifact, &self.tenant, enforcer, &decision);
        Ok(match verified {
            Ok(statement) => DeliveryConfirmation::ByEnforcer(statement.effect),
            Err(_) => DeliveryConfirmation::Forged,
        })
    }

    /// A decision as a file that can be verified offline. The file has the artifact.
    pub async fn record(
        &self,
        opened: &OpenedArtifact,
        decided: &AcceptedDecision,
    ) -> DecisionRecord {
        DecisionRecord {
            tenant: self.tenant.clone(),
            approver: self.id.clone(),
            enforcer: opened.enforcer().id().clone(),
            artifact: opened.artifact().text().to_owned(),
            decision: decided.body.clone(),
            device: self.bundle.clone(),
            // For those who know another device of this approver. The file is complete without.
            statements: self.statements().await.unwrap_or_default(),
        }
    }
}

fn check_action(opened: &OpenedArtifact, id: &str, verdict: Verdict) -> Result<()> {
    let actions = requested_actions(opened.artifact());
    match actions.iter().find(|action| action.id == id) {
        Some(action) if action.verdict == verdict => Ok(()),
        Some(_) => Err("this choice is for the opposite decision"),
        None => Err("the request offers no choice with this id"),
    }
    .map_err(ClientError::Choice)
}

fn check_answers(artifact: &PlainArtifact, count: usize) -> Result<()> {
    let node = json::parse(artifact.text().as_bytes()).ok();
    let payload = node.as_ref().and_then(|node| wire::member(node, "payload"));
    let questions = payload.and_then(|payload| wire::array(payload, "questions"));
    if questions.is_none_or(|questions| questions.len() != count) {
        let problem = "a request is answered with one answer for each of its questions";
        return Err(ClientError::Choice(problem));
    }
    Ok(())
}

/// The words of a command of which more could be permitted.
fn grantable_words(artifact: &PlainArtifact) -> Result<Vec<String>> {
    let node = json::parse(artifact.text().as_bytes());
    let words = node.ok().and_then(|node| read_words(&node));
    let Some(words) = words else {
        return Err(ClientError::Choice(
            "this command is more than plain words, so no prefix can cover it; use --grant same, or approve it once",
        ));
    };
    if hides_what_runs(&words) {
        return Err(ClientError::Choice(
            "later words of this command choose what runs, so no prefix can cover it; use --grant same, or approve it once",
        ));
    }
    Ok(words)
}

/// A grant by words is for the command that was shown, and others like it.
fn check_pattern(artifact: &PlainArtifact, pattern: &WordPattern) -> Result<()> {
    let words = grantable_words(artifact)?;
    let problem = match pattern_problem(pattern) {
        Some(PatternProblem::RunsAnother) => {
            "later words of this command say what runs, so its words cannot be free; permit --grant same, or this once"
        }
        Some(PatternProblem::FreeSubcommand) => {
            "the word that says what the program does has to be the same; only later words can be free"
        }
        Some(PatternProblem::FreeChoice) => {
            "a free word would choose a program, a file, a directory or a configuration; fix the word behind that option"
        }
        None if fits(pattern, &words) => return Ok(()),
        None => "the command does not fit these words; enforcers would not keep this grant",
    };
    Err(ClientError::Choice(problem))
}

/// A grant of edits is for a session, and for files that the request names with their project.
fn check_edit(artifact: &PlainArtifact, matches: &GrantMatch, scope: DecisionScope) -> Result<()> {
    if scope != DecisionScope::Session {
        let problem = "edits are permitted for a session only: --scope session";
        return Err(ClientError::Choice(problem));
    }
    let subject = GrantSubject::of_artifact(artifact);
    match subject {
        Some((subject, Some(_))) if subject.permits(matches, &subject) => Ok(()),
        _ => Err(ClientError::Choice(
            "this edit can't be permitted for longer: it isn't part of a session, or its files aren't in the project",
        )),
    }
}

/// A grant by prefix is for the command that was shown, and others like it.
fn check_prefix(artifact: &PlainArtifact, prefix: &[String]) -> Result<()> {
    let words = grantable_words(artifact)?;
    let Some(later) = words.strip_prefix(prefix) else {
        return Err(ClientError::Choice(
            "the command does not begin with these words, so the grant would have no effect",
        ));
    };
    let program = prefix.first().map_or("", String::as_str);
    if later.iter().any(|word| chooses_something(program, word)) {
        return Err(ClientError::Choice(
            "a later word of this command chooses a program, a file, a directory or a configuration; name more words, use --grant same, or approve it once",
        ));
    }
    Ok(())
}

/// The words of a command; `None` if a shell could read it as another one.
fn read_words(artifact: &JsonNode<'_>) -> Option<Vec<String>> {
    let payload = wire::member(artifact, "payload")?;
    if wire::member(payload, "argv").is_some() {
        let words = wire::array(payload, "argv")?.iter().map(JsonNode::as_str);
        return words.map(|word| word.map(str::to_owned)).collect();
    }
    plain_words(wire::text(payload, "command")?)
}
