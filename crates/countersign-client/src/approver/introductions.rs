//! Enforcers that another device of this approver has authenticated. This device believes a
//! signature of a device that it trusts, and nothing that the gateway adds. An introduction that
//! disagrees with another, or of a pairing that was ended here, is not taken over.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::devices::array;
use super::open_failure::OpenFailure;
use super::role::{Approver, locked};
use super::team_adoption::TeamIntroductions;
use crate::error::{ClientError, Result};
use crate::gateway::GatewayCall;
use crate::profile::{ApproverProfile, EnforcerRecord};
use crate::wire;
use countersign_e2e::{
    DeviceTrust, Introduction, IntroductionClaims, MAX_OPERATORS, OperatorList, SignedIntroduction,
    TeamChain, TeamId,
};
use countersign_protocol::id::ApproverId;
use countersign_protocol::timestamp::Timestamp;

/// More than the gateway keeps: one that lists without end is not followed.
const MAX_LISTED: usize = 4_096;
/// Pushed requests of unknown enforcers make this device look no more often.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The device that vouches for an enforcer which this device was not paired with itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introducer {
    pub id: String,
    /// None if it is not in force any more.
    pub name: Option<String>,
    pub is_revoked: bool,
}

impl Approver {
    /// Takes over the enforcers that other devices know, and publishes those that this one knows.
    /// It can be called again at any time.
    pub async fn share_enforcers(&self) -> Result<()> {
        // Without it, only agents that are introduced to teams are missing.
        let _later = self.adopt_teams().await;
        let of_teams = self.team_introductions().await?;
        self.learn_from(&of_teams).await?;
        self.introduce().await?;
        self.introduce_to_teams(&of_teams).await
    }

    /// The device that introduced an enforcer to this one.
    pub fn introducer(&self, record: &EnforcerRecord) -> Result<Option<Introducer>> {
        let Some(id) = record.introduced_by.clone() else {
            return Ok(None);
        };
        let trust = self.own_trust()?;
        let mut devices = trust.in_force().iter();
        let device = devices.find(|device| device.id().to_string() == id);
        let name = device.map(|device| device.bundle().name().as_str().to_owned());
        let mut revoked = trust.revoked().iter();
        let is_revoked = revoked.any(|revoked| revoked.to_string() == id);
        Ok(Some(Introducer {
            id,
            name,
            is_revoked,
        }))
    }

    /// The well-formed introductions that the gateway lists, not verified.
    async fn listed_introductions(&self) -> Result<Vec<SignedIntroduction>> {
        let call = GatewayCall::get(self.path(&["introductions"]));
        let answer = self.access.call(&call, &[200]).await?;
        let node = wire::parse(&answer.body)?;
        let listed = array(&node, "introductions")?.iter().take(MAX_LISTED);
        let signed = listed.map(SignedIntroduction::parse);
        Ok(signed.filter_map(Result::ok).collect())
    }

    /// Signs and publishes an introduction of each enforcer that is known here, unless the gateway
    /// lists it already. It includes those that another own device has introduced: when the device that
    /// was paired is lost, others still learn of them.
    async fn introduce(&self) -> Result<()> {
        let listed = self.listed_introductions().await?;
        let mut refused = None;
        // Devices of this person that a team has introduced an enforcer to learn it there themselves.
        let own = self.enforcers().into_iter();
        for record in own.filter(|record| record.introduced_in.is_none()) {
            let operators = introduced(&record)?;
            let introduction = self.introduction(&record, operators.as_ref(), None)?;
            let stands = |signed: &SignedIntroduction| *signed.introduction() == introduction;
            if listed.iter().any(stands) {
                continue;
            }
            match self.publish_introduction(introduction).await {
                // The pairing has ended, perhaps on another device.
                Err(error) if error.code() == Some("POLICY_DENY") => {}
                Err(error) if matches!(error.code(), Some("SIGNATURE_INVALID" | "KEY_REVOKED")) => {
                    return Err(ClientError::DeviceNotInForce);
                }
                // Never without the operators: every gateway could have them forgotten.
                Err(error) if operators.is_some() && error.code() == Some("VALIDATION") => {
                    refused.get_or_insert(ClientError::OperatorsRefused(record.id));
                }
                Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn introduction(
        &self,
        record: &EnforcerRecord,
        operators: Option<&OperatorList>,
        team: Option<TeamId>,
    ) -> Result<Introduction> {
        let enforcer = (&record.pinned()?, record.label.as_deref());
        let (at, by) = (record.paired_at()?, self.device_id());
        let claims = &IntroductionClaims {
            operators: operators.cloned(),
            team,
        };
        let introduction = Introduction::new(&self.tenant, &self.id, enforcer, claims, at, by)?;
        Ok(introduction)
    }

    /// Vouches for the enforcers of the teams that this person owns, as far as own devices have paired
    /// them: for those of another owner, a person has to say so. The first failure is returned, and
    /// holds up nothing.
    async fn introduce_to_teams(&self, of_teams: &[TeamIntroductions]) -> Result<()> {
        let mut failed = Ok(());
        for listed in of_teams {
            let (team, own) = (listed.chain.head().team, self.device_id());
            let seat = listed.chain.content().seat(&self.id);
            if !seat.is_some_and(|seat| seat.owner && seat.has_device(own)) {
                continue;
            }
            let own = self.enforcers().into_iter();
            for record in own.filter(|record| record.introduced_in.is_none()) {
                if record.is_paired_with(team) || listed.introduces(&record) {
                    let introduced = self.introduce_to_team(&record, team, listed).await;
                    failed = failed.and(introduced);
                }
            }
        }
        failed
    }

    /// The same with what the teams have now.
    pub(super) async fn vouch_for_own(&self) -> Result<()> {
        let of_teams = self.team_introductions().await?;
        self.introduce_to_teams(&of_teams).await
    }

    /// The enforcers that the team's members forget when this owner leaves.
    pub async fn resting_on(
        &self,
        chain: &TeamChain,
        owner: &ApproverId,
    ) -> Result<Vec<EnforcerRecord>> {
        self.learn().await?;
        let (team, of_teams) = (chain.head().team, self.team_introductions().await?);
        let mut listed = of_teams.iter().filter(|it| it.chain.head().team == team);
        let Some(listed) = listed.next() else {
            return Ok(Vec::new());
        };
        let rests = |record: &EnforcerRecord| {
            let mut introducers = listed.introducers_of(record).peekable();
            introducers.peek().is_some() && introducers.all(|introducer| introducer == owner)
        };
        Ok(self.enforcers().into_iter().filter(rests).collect())
    }

    /// Vouches for an enforcer that another owner has introduced.
    pub async fn vouch(&self, chain: &TeamChain, record: &EnforcerRecord) -> Result<()> {
        let team = chain.head().team;
        let operators = introduced(record)?;
        let introduction = self.introduction(record, operators.as_ref(), Some(team))?;
        self.publish_to_team(introduction, team).await
    }

    async fn introduce_to_team(
        &self,
        record: &EnforcerRecord,
        team: TeamId,
        listed: &TeamIntroductions,
    ) -> Result<()> {
        let operators = introduced(record)?;
        let introduction = self.introduction(record, operators.as_ref(), Some(team))?;
        let mut accepted = listed.accepted.iter().map(SignedIntroduction::introduction);
        if accepted.any(|known| *known == introduction) {
            return Ok(());
        }
        // Another owner may have ended the pairing, or removed this one.
        match self.publish_to_team(introduction, team).await {
            Err(error)
                if error.is_refusal(404)
                    || matches!(error.code(), Some("POLICY_DENY" | "SIGNATURE_INVALID")) =>
            {
                Ok(())
            }
            introduced => introduced,
        }
    }

    async fn publish_to_team(&self, introduction: Introduction, team: TeamId) -> Result<()> {
        let signed = introduction.sign(&self.keys)?;
        let call = GatewayCall::post(Self::team_path(team, "introductions"), signed.to_text());
        self.access.call(&call, &[200, 201]).await.map(drop)
    }

    async fn publish_introduction(&self, introduction: Introduction) -> Result<()> {
        let signed = introduction.sign(&self.keys)?;
        let call = GatewayCall::post(self.path(&["introductions"]), signed.to_text());
        self.access.call(&call, &[200, 201]).await.map(drop)
    }

    /// Whether the last look was long enough ago.
    pub(super) fn may_look(&self) -> bool {
        let last = *locked(&self.looked);
        last.is_none_or(|last| last.elapsed() >= POLL_INTERVAL)
    }

    /// Looks for introductions. If the gateway withholds them, the enforcers stay unknown.
    pub(super) async fn look_for_introductions(&self) -> Result<()> {
        match self.learn().await {
            Err(error @ (ClientError::Profile(_) | ClientError::ProfileReplaced)) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Why an introduction of this enforcer was not taken over.
    pub(super) fn refused_introduction(&self, enforcer: &str) -> Option<OpenFailure> {
        locked(&self.refused).get(enforcer).cloned()
    }

    async fn learn(&self) -> Result<()> {
        let of_teams = self.team_introductions().await?;
        self.learn_from(&of_teams).await
    }

    /// Pins the enforcers that devices which this one trusts have introduced. One that a team has
    /// introduced is forgotten with its basis there.
    async fn learn_from(&self, of_teams: &[TeamIntroductions]) -> Result<()> {
        *locked(&self.looked) = Some(Instant::now());
        // Another program may have paired with this profile.
        self.reload()?;
        let signed = self.signed_statements().await?;
        let mut listed = self.listed_introductions().await?;
        listed.retain(|signed| signed.introduction().team().is_none());
        listed.extend(of_teams.iter().flat_map(|it| it.accepted.clone()));
        let refused = self.update_if_new(|profile| {
            let (trust, is_new) = profile.follow(&signed)?;
            let before = profile.enforcers.len();
            (profile.enforcers).retain(|record| !of_teams.iter().any(|it| it.has_dropped(record)));
            let is_less = profile.enforcers.len() < before;
            let (changed, refused) = take_over(profile, &trust, &listed)?;
            Ok((refused, changed || is_new || is_less))
        })?;
        *locked(&self.refused) = refused;
        Ok(())
    }
}

/// The operators that an introduction names. Those beyond its limit are left out.
fn introduced(record: &EnforcerRecord) -> Result<Option<OperatorList>> {
    let mut ids = record.operators()?;
    ids.truncate(MAX_OPERATORS);
    Ok(OperatorList::new(ids).filter(|operators| !operators.ids().is_empty()))
}

/// The introductions of one enforcer.
struct IntroductionOffer<'a> {
    introduction: &'a Introduction,
    agreed: bool,
    /// The latest of their pairings.
    at: Timestamp,
    /// As each of them says.
    operators: Vec<&'a OperatorList>,
}

/// Pins the enforcers that devices in force have introduced, if nothing contradicts. Returns
/// whether there was any, and why others were refused.
fn take_over(
    profile: &mut ApproverProfile,
    trust: &DeviceTrust,
    listed: &[SignedIntroduction],
) -> Result<(bool, BTreeMap<String, OpenFailure>)> {
    let mut offered = BTreeMap::<&str, IntroductionOffer<'_>>::new();
    let mut refused = BTreeMap::new();
    let own = profile.bundle()?.id();
    for signed in listed {
        let introduction = signed.introduction();
        // Those to teams were verified when they were read, by the newest state.
        let accepted = match introduction.team() {
            Some(_) => Ok(introduction.claimed()),
            None => signed.accept(trust),
        };
        let Ok(enforcer) = accepted else {
            continue;
        };
        let id = enforcer.id().as_str();
        let ended = profile.unpaired.iter().find(|ended| ended.id == id);
        // A time that cannot be read is damage, and then nothing brings it back.
        let is_over = ended.is_some_and(|ended| {
            Timestamp::parse(&ended.at).is_none_or(|ended| introduction.at() <= ended)
        });
        if is_over {
            refused.insert(id.to_owned(), OpenFailure::EndedHere);
            continue;
        }
        // This device's own record is better.
        if introduction.by() == own {
            continue;
        }
        let entry = offered.entry(id).or_insert(IntroductionOffer {
            introduction,
            agreed: true,
            at: introduction.at(),
            operators: Vec::new(),
        });
        // The word of an own device lasts longer than that of a team.
        if introduction.team().is_none() && entry.introduction.team().is_some() {
            entry.agreed &=
                entry.introduction.claimed().encryption_key() == enforcer.encryption_key();
            entry.introduction = introduction;
        }
        let first = entry.introduction.claimed().encryption_key();
        entry.agreed &= first == enforcer.encryption_key();
        entry.at = entry.at.max(introduction.at());
        entry.operators.extend(introduction.operators());
    }
    let mut changed = false;
    for (id, offer) in offered {
        let key = offer.introduction.claimed().encryption_key().to_text();
        let mut records = profile.enforcers.iter_mut();
        let known = records.find(|record| record.id == id);
        let reason = match known {
            Some(record) if offer.agreed && record.key == key => {
                for operators in offer.operators {
                    changed |= record.add_operators(Some(operators));
                }
                let team = offer.introduction.team().map(|team| team.to_string());
                if record.introduced_in.is_some() && record.introduced_in != team {
                    record.introduced_by = Some(offer.introduction.by().to_string());
                    record.introduced_in = team;
                    changed = true;
                }
                None
            }
            Some(_) => Some(OpenFailure::OtherKey),
            None if !offer.agreed => Some(OpenFailure::Disagreement),
            None => {
                let mut record = EnforcerRecord {
                    id: id.to_owned(),
                    key,
                    paired_at: offer.at.to_string(),
                    routing_token: None,
                    label: offer.introduction.label().map(str::to_owned),
                    introduced_by: Some(offer.introduction.by().to_string()),
                    introduced_in: offer.introduction.team().map(|team| team.to_string()),
                    operators: Vec::new(),
                    teams: Vec::new(),
                };
                for operators in offer.operators {
                    record.add_operators(Some(operators));
                }
                profile.enforcers.push(record);
                profile.unpaired.retain(|ended| ended.id != id);
                changed = true;
                None
            }
        };
        match reason {
            Some(reason) => refused.insert(id.to_owned(), reason),
            None => refused.remove(id),
        };
    }
    Ok((changed, refused))
}
