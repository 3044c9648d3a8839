//! Pairing from the approver's side: by the link that the enforcer printed, or by its short code
//! and digits that a person compares. An enforcer is pinned only once it is authentic. At the
//! gateway a pairing is for all devices of the approver.

use serde_json::json;

use super::role::Approver;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, page_path};
use crate::profile::{EnforcerRecord, UnpairedRecord};
use crate::random::random;
use crate::visible::visible;
use countersign_e2e::{
    AuthenticOffer, ComparisonDigits, DigitComparison, EnforcerBundle, OperatorList, PairingAnswer,
    PairingClaims, PairingLink, PinnedEnforcer, TeamHead, TeamId, answer_by_code, answer_by_link,
};
use countersign_protocol::id::EnforcerId;
use countersign_protocol::pairing::{Nonce, PairingCode};

const PAGE: usize = 100;
/// More pairings than anyone has: a gateway that pages for ever is stopped.
const MAX_PAGES: usize = 100;

/// The offer of an enforcer, as the gateway says.
struct PairingOffer {
    bundle: EnforcerBundle,
    nonce: Nonce,
    label: Option<String>,
}

/// A pairing by typed code that waits for a person to compare the digits.
#[must_use = "nothing is pinned until the digits were compared"]
pub struct PendingComparison {
    comparison: DigitComparison<PinnedEnforcer>,
    enforcer: EnforcerId,
    routing_token: String,
    label: Option<String>,
    choice: PairingChoice,
}

impl PendingComparison {
    pub fn digits(&self) -> ComparisonDigits {
        self.comparison.digits()
    }

    /// The claimed id.
    pub fn enforcer(&self) -> &EnforcerId {
        &self.enforcer
    }

    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

/// Whether pairing may replace the key of a known enforcer. Otherwise a link that a person was made
/// to open could take the place of an enforcer that the person knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KnownKey {
    #[default]
    Keep,
    Replace,
}

/// The person's word on a pairing.
#[derive(Debug, Clone, Default)]
pub struct PairingChoice {
    pub known: KnownKey,
    /// The people who work with the agent; an empty list says that there is nobody. An enforcer of
    /// an older version refuses a pairing that names any.
    pub operators: Option<OperatorList>,
    /// The team to pair, of which this approver is an owner, instead of the approver alone.
    pub team: Option<TeamHead>,
}

impl PairingChoice {
    fn claims(&self) -> PairingClaims {
        PairingClaims {
            operators: self.operators.clone(),
            team: self.team,
        }
    }
}

impl Approver {
    fn check_known(&self, id: &str, key: &str, known: KnownKey) -> Result<()> {
        let differs = self.enforcer(id).is_some_and(|record| record.key != key);
        if differs && known == KnownKey::Keep {
            return Err(ClientError::KnownWithOtherKey(visible(id)));
        }
        Ok(())
    }

    async fn resolve(&self, code: PairingCode) -> Result<PairingOffer> {
        let code = code.to_string();
        let answer = self.access.get(&["v1", "pairing", "resolve", &code]).await;
        let unknown = ClientError::NoSuchCode;
        let answer = (answer.map_err(|error| error.refused_as(&[404], unknown))?).json()?;
        let nonce = answer["nonce"].as_str().and_then(Nonce::parse);
        let Some(bundle) = answer["publicKey"].as_str() else {
            return Err(ClientError::answer(
                "the enforcer's key; the other side may not be Countersign",
            ));
        };
        let bundle = EnforcerBundle::parse(bundle)?;
        Ok(PairingOffer {
            nonce: nonce.ok_or_else(|| ClientError::answer("a nonce"))?,
            label: bundle.label().map(str::to_owned),
            bundle,
        })
    }

    /// Returns the routing token. There is no retry after a lost answer: the pairing could be
    /// complete, and would be refused.
    async fn complete(
        &self,
        nonce: &Nonce,
        answer: &PairingAnswer,
        team: Option<TeamHead>,
    ) -> Result<String> {
        let mut body = json!({
            "nonce": nonce, "approverId": self.id, "publicKey": answer.to_text()?,
        });
        if let Some(team) = team {
            body["teamId"] = team.team.to_string().into();
        }
        let call = GatewayCall::post("/v1/pairing/complete", body.to_string()).once();
        let answer = self.access.call(&call, &[200]).await;
        let unknown = ClientError::NoSuchCode;
        let answer = (answer.map_err(|error| error.refused_as(&[404, 409], unknown))?).json()?;
        let token = answer["routingToken"].as_str().map(str::to_owned);
        token.ok_or_else(|| ClientError::answer("a routing token"))
    }

    /// Pairs with the enforcer whose key the link authenticates. Refused if it is known with
    /// another key.
    pub async fn pair_by_link(&mut self, link: &PairingLink) -> Result<EnforcerRecord> {
        self.pair_by_link_with(link, PairingChoice::default()).await
    }

    pub async fn pair_by_link_with(
        &mut self,
        link: &PairingLink,
        choice: PairingChoice,
    ) -> Result<EnforcerRecord> {
        let resolved = self.resolve(link.code).await?;
        let nonce = &resolved.nonce;
        let offer = AuthenticOffer::check(resolved.bundle, &link.fingerprint)?;
        let (secret, own, claims) = (&link.secret, &self.bundle, &choice.claims());
        let (answer, pinned) =
            answer_by_link(&offer, secret, nonce, &self.id, own, claims, &mut random)?;
        let (id, key) = (pinned.id().to_string(), pinned.encryption_key().to_text());
        self.check_known(&id, &key, choice.known)?;
        let routing_token = self.complete(nonce, &answer, choice.team).await?;
        self.pin(&pinned, routing_token, resolved.label, choice)
            .await
    }

    /// Completes a pairing by its typed code. Nothing is pinned before `confirm`. Refused if the
    /// enforcer is known with another key.
    pub async fn pair_by_code(&self, code: PairingCode) -> Result<PendingComparison> {
        self.pair_by_code_with(code, PairingChoice::default()).await
    }

    pub async fn pair_by_code_with(
        &self,
        code: PairingCode,
        choice: PairingChoice,
    ) -> Result<PendingComparison> {
        let offer = self.resolve(code).await?;
        let key = offer.bundle.encryption_key().to_text();
        self.check_known(offer.bundle.enforcer_id().as_str(), &key, choice.known)?;
        let (nonce, own, claims) = (&offer.nonce, &self.bundle, &choice.claims());
        let (answer, comparison) =
            answer_by_code(&offer.bundle, nonce, &self.id, own, claims, &mut random)?;
        let routing_token = self.complete(nonce, &answer, choice.team).await?;
        Ok(PendingComparison {
            comparison,
            enforcer: offer.bundle.enforcer_id().clone(),
            routing_token,
            label: offer.label,
            choice,
        })
    }

    /// Pins the enforcer, after a person said that both screens show the same digits.
    pub async fn confirm(&mut self, comparing: PendingComparison) -> Result<EnforcerRecord> {
        let pinned = comparing.comparison.confirmed_by_person();
        let (token, label) = (comparing.routing_token, comparing.label);
        self.pin(&pinned, token, label, comparing.choice).await
    }

    /// Gives up a pairing whose digits differ.
    pub async fn abort(&self, comparing: PendingComparison) -> Result<()> {
        (self.access.revoke_pairing(&comparing.routing_token)).await
    }

    async fn pin(
        &mut self,
        enforcer: &PinnedEnforcer,
        routing_token: String,
        label: Option<String>,
        choice: PairingChoice,
    ) -> Result<EnforcerRecord> {
        let mut record = EnforcerRecord {
            id: enforcer.id().to_string(),
            key: enforcer.encryption_key().to_text(),
            paired_at: self.now().to_string(),
            routing_token: None,
            label,
            introduced_by: None,
            introduced_in: None,
            operators: Vec::new(),
            teams: Vec::new(),
        };
        let kept = self.update(|profile| {
            profile.unpaired.retain(|ended| ended.id != record.id);
            let mut known = profile.enforcers.iter();
            if let Some(known) = known.find(|known| known.id == record.id) {
                record.operators.clone_from(&known.operators);
                record.teams.clone_from(&known.teams);
                record.routing_token.clone_from(&known.routing_token);
            }
            record.add_operators(choice.operators.as_ref());
            match choice.team {
                Some(head) => record.pair_with(head.team, routing_token.clone()),
                None => record.routing_token = Some(routing_token.clone()),
            }
            profile.enforcers.retain(|known| known.id != record.id);
            profile.enforcers.push(record.clone());
            Ok(())
        });
        if let Err(error) = kept {
            // The enforcer must not wait for a device that does not know it.
            let _unpaired = self.access.revoke_pairing(&routing_token).await;
            return Err(error);
        }
        Ok(record)
    }

    /// Ends a pairing, here and at the gateway, there for all devices, and for the members of the teams
    /// with which this device has paired it. It ends here even if the call to the gateway fails. Earlier
    /// introductions by other devices do not bring it back.
    pub async fn unpair(&mut self, enforcer: &str) -> Result<bool> {
        let Some(record) = self.enforcer(enforcer) else {
            return Ok(false);
        };
        // The other device's clock may be ahead.
        let at = self.now().max(record.paired_at()?).to_string();
        self.update(|profile| {
            profile.enforcers.retain(|record| record.id != enforcer);
            profile.unpaired.retain(|ended| ended.id != enforcer);
            let id = enforcer.to_owned();
            profile.unpaired.push(UnpairedRecord { id, at });
            Ok(())
        })?;
        let found = self.token_of(enforcer).await;
        let (direct, mut ended) = match found {
            Ok(token) => (token, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let direct = direct.or(record.routing_token);
        let own = record.teams.into_iter().filter(|it| self.owns(&it.team_id));
        let of_teams = own.map(|it| it.routing_token);
        for token in direct.into_iter().chain(of_teams) {
            ended = ended.and(self.access.revoke_pairing(&token).await);
        }
        ended.map(|()| true)
    }

    /// Whether this person is an owner of the team, by what is known here.
    fn owns(&self, team: &str) -> bool {
        let team = TeamId::parse(team).ok();
        let chain = team.and_then(|team| self.known_team(team).ok());
        let seat = chain
            .as_ref()
            .and_then(|chain| chain.content().seat(&self.id));
        seat.is_some_and(|seat| seat.owner)
    }

    /// The current token of the pairing: another device may have paired last.
    async fn token_of(&self, enforcer: &str) -> Result<Option<String>> {
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let call = GatewayCall::get(page_path("/v1/pairings", PAGE, cursor.as_deref()));
            let page = self.access.call(&call, &[200]).await?.json()?;
            let pairings = page["items"].as_array();
            let pairings = pairings.ok_or_else(|| ClientError::answer("a list of pairings"))?;
            // One that follows from a team has no token.
            let found = pairings.iter().find(|line| {
                let is_own = line["approverId"] == self.id.as_str();
                line["enforcerId"] == enforcer && is_own && line["routingToken"].is_string()
            });
            if let Some(line) = found {
                return Ok(line["routingToken"].as_str().map(str::to_owned));
            }
            match page["nextCursor"].as_str() {
                Some(next) if cursor.as_deref() != Some(next) => cursor = Some(next.to_owned()),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}
