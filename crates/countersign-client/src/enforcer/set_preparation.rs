//! Preparing a set: a request for each person that the rule names. Or going on with one that a call
//! of before has left, if that is about the same and asks the same people in the same way.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde_json::json;
use tokio::time::Instant;

use super::approval_request::{ApprovalDenial, ApprovalRequest};
use super::approval_set::PendingSet;
use super::parked_set::{KeptSet, SetFolder, StoredPart, StoredSet};
use super::pending_request::RequestSubmission;
use super::role::Enforcer;
use super::set_part::SetPart;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, path};
use crate::random::random;
use countersign_e2e::{
    ApprovalRule, DenialCause, OutcomeKey, OwnRequest, PlainArtifact, RuleTerms, SeatSource, SetId,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{ApproverId, RequestId, TextId as _};

/// The subject of a set that goes on without its call.
struct ParkedSubject {
    digest: String,
    lifetime: Duration,
}

impl Enforcer {
    /// Prepares a request for each person that the rule names. Denies at once if too few of them
    /// can be asked.
    pub async fn prepare_set(
        &mut self,
        request: ApprovalRequest,
        terms: RuleTerms,
    ) -> Result<PendingSet<'_>, ApprovalDenial> {
        let deadline = Instant::now() + request.submit_timeout.min(request.timeout);
        let terms = Box::pin(self.renewed_terms(terms, deadline)).await?;
        Box::pin(self.new_set(request, terms, None)).await
    }

    /// Like `prepare_set`, with requests that stay open for the time of `park`, also when the call has
    /// ended. Goes on with those of before about the same.
    pub async fn open_set(
        &mut self,
        request: ApprovalRequest,
        terms: RuleTerms,
        park: Option<Duration>,
    ) -> Result<PendingSet<'_>, ApprovalDenial> {
        let subject = subject(&request);
        let deadline = Instant::now() + request.submit_timeout.min(request.timeout);
        let terms = Box::pin(self.renewed_terms(terms, deadline)).await?;
        let parked = Box::pin(self.parked_set(&subject, &terms, park, deadline));
        if let Some(kept) = parked.await? {
            return Box::pin(self.resume_set(request, terms, kept)).await;
        }
        let park = park.map(|park| ParkedSubject {
            digest: subject,
            lifetime: park.max(request.timeout),
        });
        Box::pin(self.new_set(request, terms, park)).await
    }

    async fn new_set(
        &mut self,
        mut request: ApprovalRequest,
        terms: RuleTerms,
        park: Option<ParkedSubject>,
    ) -> Result<PendingSet<'_>, ApprovalDenial> {
        let begun = Instant::now();
        let wait_until = begun + request.timeout;
        let park = park.filter(|_| self.set_folder().has_room());
        let until = (park.as_ref()).map_or(wait_until, |park| begun + park.lifetime);
        let submit_until = wait_until.min(begun + request.submit_timeout);
        let seats = self.set_seats(&request, &terms, submit_until).await?;
        let (set, outcome_key) = (
            SetId::generate(&mut random)?,
            OutcomeKey::generate(&mut random)?,
        );
        // A set that is kept has a request for each person, so that each is resumed alone.
        let is_joint = park.is_none()
            && seats.len() > 1
            && terms.takes_first_decision()
            && self.gateway_names_several(submit_until).await;
        let rule = ApprovalRule {
            enforcer: self.id.clone(),
            set,
            seat: (seats.first())
                .filter(|_| !is_joint)
                .map(|seat| seat.person.clone()),
            terms: terms.clone(),
        };
        rule.name_in(&mut request.members);
        let created_at = self.access.now();
        let devices: Vec<_> = seats.iter().flat_map(|it| it.devices.clone()).collect();
        let first = self.artifact(request, &devices, &outcome_key, until)?;
        let asked = if is_joint {
            let people: Vec<_> = seats.into_iter().map(|it| it.person).collect();
            vec![(people, devices)]
        } else {
            let seats = seats.into_iter();
            seats.map(|it| (vec![it.person], it.devices)).collect()
        };
        let mut parts = Vec::new();
        for (people, devices) in asked {
            let seat = people.first().filter(|_| !is_joint).cloned();
            let artifact = if parts.is_empty() {
                first.clone()
            } else {
                let id = RequestId::parse(&self.access.clock.operation_id().to_string());
                let id = id.ok_or_else(|| ClientError::answer("the id of a request"))?;
                first.for_part(&id, seat.as_ref())?
            };
            let after = people.iter().map(|it| terms.seconds_until_asked(it));
            let after = Duration::from_secs(u64::from(after.max().unwrap_or_default()));
            let is_later = !after.is_zero();
            let mut part = self.part(seat, &terms, artifact, &outcome_key, until);
            part.ask_at = begun + after;
            part.submit_until = if is_later { until } else { submit_until };
            part.submission = Some(self.sealed(&part.artifact, &devices)?);
            part.people = people;
            part.devices = devices;
            parts.push(part);
        }
        let kept = park.map(|park| {
            let seats = parts.iter().filter_map(|part: &SetPart| {
                Some(StoredPart {
                    seat: part.seat.clone()?,
                    request_id: part.own.request_id.clone(),
                })
            });
            self.keep_set(StoredSet {
                artifact: first,
                outcome_key: outcome_key.clone(),
                subject: park.digest,
                created_at,
                parts: seats.collect(),
                is_everyone_asked: false,
            })
        });
        Ok(PendingSet {
            kept: kept.transpose()?,
            enforcer: self,
            set,
            terms,
            outcome_key,
            parts,
            outcome: None,
            wait_until,
            until,
        })
    }

    fn part(
        &self,
        seat: Option<ApproverId>,
        terms: &RuleTerms,
        artifact: PlainArtifact,
        outcome_key: &OutcomeKey,
        until: Instant,
    ) -> SetPart {
        SetPart {
            people: seat.iter().cloned().collect(),
            source: (seat.as_ref()).and_then(|seat| SeatSource::of(seat, terms)),
            seat,
            enforcer: self.another(),
            own: OwnRequest::of(&artifact, self.id.clone()),
            artifact,
            outcome_key: outcome_key.clone(),
            devices: Vec::new(),
            submission: None,
            is_resumed: false,
            ask_at: Instant::now(),
            submit_until: until,
            until,
            decision: None,
            loss: None,
            is_sent: false,
            is_submitted: false,
            is_named: false,
        }
    }

    pub(super) fn set_folder(&self) -> SetFolder {
        SetFolder::beside(&self.file, &self.keys, &self.id, &self.tenant)
    }

    /// Before anyone is asked: a call that is killed can be repeated.
    fn keep_set(&self, stored: StoredSet) -> Result<KeptSet, ApprovalDenial> {
        let folder = self.set_folder();
        let place = folder.lock(stored.id());
        let place = place.ok_or(ClientError::Choice("the requests cannot be kept"))?;
        let kept = KeptSet {
            folder,
            place,
            stored,
        };
        kept.write()?;
        Ok(kept)
    }

    /// Whether nothing can come of it any more.
    pub(super) fn is_over(&self, stored: &StoredSet) -> bool {
        stored.artifact.expires_at() <= self.access.now() || self.is_taken(stored.id())
    }

    /// A set about the same that no call waits for. One with other terms is withdrawn.
    async fn parked_set(
        &mut self,
        subject: &str,
        terms: &RuleTerms,
        park: Option<Duration>,
        deadline: Instant,
    ) -> Result<Option<KeptSet>, ApprovalDenial> {
        let folder = self.set_folder();
        for id in folder.ids() {
            let Some(stored) = folder.read(&id) else {
                continue;
            };
            if stored.subject != subject && !self.is_over(&stored) {
                continue;
            }
            let Some(place) = folder.lock_soon(&id).await else {
                continue;
            };
            let stored = folder.read(&id).filter(|stored| !self.is_over(stored));
            let Some(stored) = stored else {
                place.remove()?;
                continue;
            };
            let kept = KeptSet {
                folder: self.set_folder(),
                place,
                stored,
            };
            let stored = &kept.stored;
            let age = stored.age(self.access.now());
            let is_open = park.is_some_and(|park| !age.is_negative() && age < park);
            // With the seats of teams, which an artifact does not name.
            let asked = stored.rule().map(|rule| self.known_terms(&rule.terms));
            if !is_open || asked.as_ref() != Some(terms) {
                self.withdraw_kept(kept, "it is asked again").await?;
                continue;
            }
            if self.has_outcome(stored, deadline).await? {
                self.take_once(stored.id())?;
                kept.place.remove()?;
                continue;
            }
            return Ok(Some(kept));
        }
        Ok(None)
    }

    /// Whether a call has been allowed or denied by this set before, as far as the gateway says.
    async fn has_outcome(&self, stored: &StoredSet, deadline: Instant) -> Result<bool> {
        let client = &self.access.client;
        let asking = stored.parts.iter().map(|part| async move {
            let call = path(&["v1", "exchanges", part.request_id.as_str(), "outcome"]);
            let call = GatewayCall::get(call);
            let answer = client.expect(&call, &[200, 404], deadline).await?;
            Ok::<_, ClientError>(answer.status == 200)
        });
        Ok(try_join_all(asking).await?.contains(&true))
    }

    async fn resume_set(
        &mut self,
        request: ApprovalRequest,
        terms: RuleTerms,
        kept: KeptSet,
    ) -> Result<PendingSet<'_>, ApprovalDenial> {
        let begun = Instant::now();
        let wait_until = begun + request.timeout;
        let submit_until = wait_until.min(begun + request.submit_timeout);
        let seats = self.set_seats(&request, &terms, submit_until).await?;
        let is_everyone_asked = kept.stored.is_everyone_asked;
        let age = Duration::try_from(kept.stored.age(self.access.now())).unwrap_or_default();
        let mut pending = self.stored_set(kept)?;
        pending.wait_until = wait_until;
        for part in &mut pending.parts {
            // Without devices nobody can decide it any more.
            let Some(seat) = &part.seat else { continue };
            let Some(found) = seats.iter().find(|it| it.person == *seat) else {
                let approver = seat.to_string();
                part.loss = Some(ClientError::Unpaired { approver }.into());
                continue;
            };
            let after = Duration::from_secs(u64::from(terms.seconds_until_asked(seat)));
            if !is_everyone_asked {
                part.ask_at = begun + after.saturating_sub(age);
            }
            part.devices.clone_from(&found.devices);
            let sealed = part.enforcer.sealed(&part.artifact, &part.devices)?;
            part.submission = Some(RequestSubmission {
                // Whether the devices of now can open it is not known.
                recipients: BTreeSet::new(),
                ..sealed
            });
        }
        Ok(pending)
    }

    /// A set as its file has it, with nobody's devices.
    fn stored_set(&mut self, kept: KeptSet) -> Result<PendingSet<'_>, ApprovalDenial> {
        let stored = &kept.stored;
        let rule = stored.rule().ok_or(ApprovalDenial::AlreadyUsed)?.clone();
        let terms = self.known_terms(&rule.terms);
        let left = stored.artifact.expires_at().inner() - self.access.now().inner();
        let until = Instant::now() + Duration::try_from(left).unwrap_or_default();
        let parts = stored.parts.iter().map(|part| {
            let (seat, id) = (&part.seat, &part.request_id);
            let artifact = stored.artifact.for_part(id, Some(seat))?;
            Ok::<_, ApprovalDenial>(SetPart {
                is_resumed: true,
                is_sent: true,
                ..self.part(
                    Some(seat.clone()),
                    &terms,
                    artifact,
                    &stored.outcome_key,
                    until,
                )
            })
        });
        Ok(PendingSet {
            parts: parts.collect::<Result<_, _>>()?,
            set: rule.set,
            terms,
            outcome_key: stored.outcome_key.clone(),
            outcome: None,
            wait_until: until,
            until,
            kept: Some(kept),
            enforcer: self,
        })
    }

    /// Takes back the requests of a set that no call waits for, and tells those who have decided.
    pub(super) async fn withdraw_kept(
        &mut self,
        kept: KeptSet,
        reason: &str,
    ) -> Result<(), ApprovalDenial> {
        let mut pending = self.stored_set(kept)?;
        Box::pin(pending.give_up(reason, DenialCause::Interrupted)).await;
        Ok(())
    }
}

/// The same for the same request. The next call may come in another session.
fn subject(request: &ApprovalRequest) -> String {
    let mut members = request.members.clone();
    members.remove("sessionId");
    let subject = json!([
        &request.artifact_type,
        &request.repository,
        &request.payload,
        members
    ]);
    Sha256Hex::of(subject.to_string().as_bytes()).to_string()
}
