//! The teams that count on this device. It believes one only once it, or a device that it trusts, has
//! agreed to be in it.

use super::devices::array;
use super::role::Approver;
use crate::access::call_deadline;
use crate::error::Result;
use crate::gateway::GatewayCall;
use crate::profile::TeamRecord;
use crate::team_reading::read_chain;
use crate::wire;
use countersign_e2e::{ArtifactRule, Error, SignedConsent, SignedIntroduction, TeamChain, TeamId};

/// Of those that the gateway lists. One that names more is not followed.
const MAX_ADOPTED: usize = 64;

impl Approver {
    /// The chains of the teams in a rule in which this device takes part, read on until they have
    /// the heads that the rule names.
    pub(super) async fn teams_of(&self, rule: Option<&ArtifactRule>) -> Result<Vec<TeamChain>> {
        let Some(ArtifactRule::Known(rule)) = rule else {
            return Ok(Vec::new());
        };
        let (file, mut chains) = (self.team_file(), Vec::<TeamChain>::new());
        for head in rule.terms.teams() {
            if chains.iter().any(|chain| chain.head().team == head.team) {
                continue;
            }
            let chain = match file.find(head.team)? {
                Some(record) => self.renew(&record).await?,
                None => match self.adopted(head.team).await? {
                    Some(chain) => chain,
                    None => continue,
                },
            };
            // One that the gateway withholds is refused by the checks of the rule.
            chain.knows(head)?;
            chains.push(chain);
        }
        Ok(chains)
    }

    /// Takes part in the teams that other devices of this approver have joined. One that cannot be
    /// read now is for the next time.
    pub(super) async fn adopt_teams(&self) -> Result<()> {
        let call = GatewayCall::get(self.path(&["teams"]));
        let answer = self.access.call(&call, &[200, 404]).await?;
        // An older gateway knows no teams.
        if answer.status == 404 {
            return Ok(());
        }
        let node = wire::parse(&answer.body)?;
        let listed = array(&node, "teams")?.iter().take(MAX_ADOPTED);
        let ids = listed.filter_map(|team| team.as_object()?.get("teamId")?.as_str());
        for team in ids.filter_map(|id| TeamId::parse(id).ok()) {
            if self.team_file().find(team)?.is_none() {
                let _later = self.adopted(team).await;
            }
        }
        Ok(())
    }

    /// A team that another device of this approver has joined or changed.
    async fn adopted(&self, team: TeamId) -> Result<Option<TeamChain>> {
        let read = match read_chain(&self.access, team, None, call_deadline()).await {
            Ok(read) => read,
            Err(error) if error.is_refusal(404) => return Ok(None),
            Err(error) => return Err(error),
        };
        if read.fork.is_some() {
            return Err(Error::TeamFork.into());
        }
        let (trust, consents) = (self.own_trust()?, self.listed_consents(team).await?);
        let is_own = |signed: &SignedConsent| {
            let consent = signed.consent();
            let is_same = consent.approver() == &self.id && consent.team() == team;
            is_same && trust.device(consent.by()).is_ok() && signed.verify().is_ok()
        };
        let is_signed = (read.signers.iter()).any(|id| trust.device(*id).is_ok());
        if !is_signed && !consents.iter().any(is_own) {
            return Ok(None);
        }
        self.keep_team(&read.chain)?;
        Ok(Some(read.chain))
    }

    /// The introductions to the teams of this device that count by their newest states. A team that
    /// cannot be read, such as one that this person has left, has none.
    pub(super) async fn team_introductions(&self) -> Result<Vec<SignedIntroduction>> {
        let mut accepted = Vec::new();
        for record in self.teams()? {
            if let Ok(introductions) = self.introductions_in(&record).await {
                accepted.extend(introductions);
            }
        }
        Ok(accepted)
    }

    async fn introductions_in(&self, record: &TeamRecord) -> Result<Vec<SignedIntroduction>> {
        let chain = self.renew(record).await?;
        let call = GatewayCall::get(Self::team_path(chain.head().team, "introductions"));
        let answer = self.access.call(&call, &[200]).await?;
        let node = wire::parse(&answer.body)?;
        let listed = array(&node, "introductions")?.iter();
        let listed = listed.filter_map(|node| SignedIntroduction::parse(node).ok());
        Ok(listed
            .filter(|it| it.accept_in(chain.state()).is_ok())
            .collect())
    }
}
