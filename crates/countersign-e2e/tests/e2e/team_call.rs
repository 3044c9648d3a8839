//! A call that the members of a team decide, and its receipt.

use countersign_e2e::{
    ArtifactHints, CommentDuty, DeviceTrust, OutcomeEffect, Receipt, ReceiptAnchors, RuleAsk,
    RuleTerms, TeamHead,
};
use countersign_protocol::decision::Verdict;

use super::people::tenant;
use super::receipt_cases::ALLOWED;
use super::several::{PartDecision, Person, SetScene, person};
use super::team_scene::{TeamScene, bundle, key, own, stand_in};

/// Two members of a team must approve; one rejection ends it.
pub struct TeamCall {
    pub team: TeamScene,
    /// Of a rule with two teams.
    pub other: Option<TeamScene>,
    pub set: SetScene,
}

pub fn two_of(head: TeamHead) -> RuleTerms {
    let asks = vec![RuleAsk {
        approvals: 2,
        from: [].into(),
        team: Some(head),
        escalate: Vec::new(),
    }];
    RuleTerms {
        asks,
        rejections: 1,
        comment: CommentDuty::None,
        not_by: [].into(),
    }
}

pub fn holder(name: &str, device_name: &'static str) -> Person {
    let own = vec![bundle(device_name)];
    Person {
        keys: key(device_name),
        bundle: bundle(device_name),
        trust: DeviceTrust::from_own_records(tenant(), person(name), own, [].into()),
    }
}

impl TeamCall {
    pub fn new(team: TeamScene) -> Self {
        let terms = two_of(team.chain.head());
        Self::with(team, terms)
    }

    pub fn with(team: TeamScene, terms: RuleTerms) -> Self {
        let set = SetScene::new(Some(terms));
        Self {
            team,
            other: None,
            set,
        }
    }

    /// With Erin in the place of Carol.
    pub fn deputized() -> Self {
        let mut team = TeamScene::new(1);
        team.accept(&["carol"], |it| {
            own(it, "carol").stand_in = Some(stand_in("erin"));
        });
        Self::new(team)
    }

    /// One of each team must approve.
    pub fn between(team: TeamScene, other: TeamScene) -> Self {
        let one_of = |head| RuleAsk {
            approvals: 1,
            ..two_of(head).asks.remove(0)
        };
        let terms = RuleTerms {
            asks: vec![one_of(team.chain.head()), one_of(other.chain.head())],
            ..two_of(team.chain.head())
        };
        Self {
            other: Some(other),
            ..Self::with(team, terms)
        }
    }

    pub fn teams(&self) -> impl Iterator<Item = &TeamScene> {
        [&self.team].into_iter().chain(&self.other)
    }

    /// A decision on a seat, by a device of somebody, which names the newest state of the team.
    pub fn decide(
        &self,
        seat: &str,
        (name, device): (&str, &'static str),
        verdict: Verdict,
    ) -> PartDecision {
        let hints = ArtifactHints {
            teams: self.teams().map(|it| it.chain.head()).collect(),
            ..ArtifactHints::default()
        };
        let holder = holder(name, device);
        let mut decided = self.set.decide_by(seat, &holder, verdict, hints);
        decided.part.approver = person(name);
        decided
    }

    pub fn approve(&self, seat: &str, by: &'static str) -> PartDecision {
        self.decide(seat, (by, by), Verdict::Approve)
    }

    pub fn receipt(&self, decided: &[PartDecision], effect: OutcomeEffect) -> Receipt {
        Receipt {
            teams: self.teams().flat_map(|it| it.states.clone()).collect(),
            ..self.set.receipt(decided, effect)
        }
    }

    pub fn allowed(&self, decided: &[PartDecision]) -> Receipt {
        self.receipt(decided, ALLOWED)
    }

    pub fn good(&self) -> Receipt {
        self.allowed(&[self.approve("alice", "alice"), self.approve("bob", "bob")])
    }

    pub fn anchors(&self) -> ReceiptAnchors {
        let ids = self.teams().map(|it| it.chain.head().team);
        ids.fold(ReceiptAnchors::default(), ReceiptAnchors::with_team)
    }
}

pub fn call() -> TeamCall {
    TeamCall::new(TeamScene::new(1))
}
