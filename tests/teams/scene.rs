//! People with one device each, and the teams that they sign.

use countersign::config::Config;
use countersign::e2e::{
    Error, SignedTeamState, TeamContent, TeamId, TeamLink, TeamMinimum, TeamSeat, TeamState,
};
use countersign::protocol::id::{ApproverId, TenantId, TextId as _};
use countersign::protocol::signature::Signature;
use countersign::protocol::timestamp::Timestamp;
use countersign::store::identity::credential::RoleName;
use ed25519_dalek::Signer as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::devices::Device;
use crate::support::{Answer, Approver, Client, Cluster, Enforcer, now};

pub fn random(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|_| Error::Random)
}

pub fn at() -> Timestamp {
    Timestamp::parse(&now()).unwrap()
}

pub fn first_state(
    tenant: &TenantId,
    name: &str,
    seats: Vec<TeamSeat>,
    by: &Device,
) -> SignedTeamState {
    let content = TeamContent {
        name: name.into(),
        changes: 1,
        minimum: TeamMinimum::default(),
        stand_ins: true,
        seats,
    };
    let first = TeamState::first(tenant, &content, at(), &mut random).unwrap();
    SignedTeamState::sign(first, &by.keys).unwrap()
}

/// Somebody with one device.
pub struct Person {
    pub approver: Approver,
    pub device: Device,
}

impl Person {
    pub async fn new(cluster: &Cluster, id: &str) -> Self {
        Self {
            approver: cluster.approver(id).await,
            device: Device::new(id),
        }
    }

    pub fn id(&self) -> ApproverId {
        ApproverId::parse(&self.approver.id).unwrap()
    }

    pub fn client(&self) -> &Client {
        &self.approver.client
    }

    pub fn seat(&self, owner: bool) -> TeamSeat {
        TeamSeat {
            approver: self.id(),
            owner,
            devices: vec![self.device.bundle.clone()],
            stand_in: None,
        }
    }

    pub async fn post(&self, path: &str, text: &str) -> Answer {
        self.client()
            .call(Method::POST, path)
            .text(text)
            .send()
            .await
    }
}

/// A cluster with two who will own teams, alice and bob; carol may join.
pub struct TeamScene {
    pub cluster: Cluster,
    pub bot: Enforcer,
    pub alice: Person,
    pub bob: Person,
    pub carol: Person,
}

/// A team as its owners keep it.
pub struct Team {
    pub state: TeamState,
    pub id: TeamId,
}

impl Team {
    pub fn path(&self, area: &str) -> String {
        format!("/v1/teams/{}/{area}", self.id)
    }

    /// The next state, signed by this device; the owners do not keep it.
    pub fn next(&self, by: &Device, change: impl FnOnce(&mut TeamContent)) -> SignedTeamState {
        let mut content = self.state.content().clone();
        change(&mut content);
        SignedTeamState::sign(self.state.next(&content, at()).unwrap(), &by.keys).unwrap()
    }

    /// Publishes the next state.
    pub async fn publish(&mut self, by: &Person, change: impl FnOnce(&mut TeamContent)) {
        let next = self.next(&by.device, change);
        by.post(&self.path("states"), &next.to_text())
            .await
            .expect(201);
        self.state = next.state().clone();
    }

    pub fn head(&self) -> Value {
        self.state.head().to_json()
    }
}

impl TeamScene {
    pub async fn new(nodes: usize) -> Self {
        Self::with(nodes, |_| {}).await
    }

    pub async fn with(nodes: usize, change: impl Fn(&mut Config)) -> Self {
        let cluster = Cluster::with(nodes, change).await;
        Self {
            bot: cluster.enforcer("build-bot").await,
            alice: Person::new(&cluster, "alice").await,
            bob: Person::new(&cluster, "bob").await,
            carol: Person::new(&cluster, "carol").await,
            cluster,
        }
    }

    /// A credential for any approver.
    pub async fn any_approver(&self) -> Client {
        let key = self
            .cluster
            .key(&self.cluster.tenant, RoleName::Approver, None)
            .await;
        self.cluster.client(Some(&key))
    }

    /// The first state of a team of alice alone.
    pub fn first(&self, name: &str) -> SignedTeamState {
        let seats = vec![self.alice.seat(true)];
        first_state(&self.cluster.tenant, name, seats, &self.alice.device)
    }

    /// A team of alice alone.
    pub async fn create_alone(&self, name: &str) -> Team {
        let first = self.first(name);
        self.alice
            .post("/v1/teams", &first.to_text())
            .await
            .expect(201);
        Team {
            state: first.state().clone(),
            id: first.state().head().team,
        }
    }

    /// A team of alice and bob, who both own it: their second state.
    pub async fn create(&self, name: &str) -> Team {
        let mut team = self.create_alone(name).await;
        self.agree(&team, &self.alice, &self.bob).await;
        let seat = self.bob.seat(true);
        team.publish(&self.alice, |content| content.seats.push(seat))
            .await;
        team
    }

    /// Begins a pairing, and answers it with this team or directly.
    pub async fn answer(&self, bot: &Enforcer, by: &Person, team: Option<&Team>) -> Answer {
        let begin = json!({ "enforcerId": bot.id, "enforcerLabel": "Build bot" });
        let begun = bot.client.post("/v1/pairing/initiate", &begin).await;
        let mut answer =
            json!({ "nonce": begun.expect(200).json()["nonce"], "approverId": by.approver.id });
        if let Some(team) = team {
            answer["teamId"] = json!(team.id.to_string());
        }
        by.client().post("/v1/pairing/complete", &answer).await
    }

    /// Pairs, and returns the routing token.
    pub async fn pair(&self, by: &Person, team: Option<&Team>) -> String {
        let paired = self.answer(&self.bot, by, team).await.expect(200).json();
        paired["routingToken"].as_str().unwrap().to_owned()
    }

    /// The pairings in force of the enforcer: the approvers, with a star if they follow from a team.
    pub async fn paired(&self) -> String {
        let listed = self.bot.client.get("/v1/pairings").await.expect(200).json();
        let mut names: Vec<_> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| {
                let star = if item["teamId"].is_null() { "" } else { "*" };
                assert_eq!(item["routingToken"].is_null(), !star.is_empty(), "{item}");
                format!("{}{star}", item["approverId"].as_str().unwrap())
            })
            .collect();
        names.sort();
        names.join(" ")
    }

    /// Invites somebody, and returns the text of the consent.
    pub async fn invite(&self, team: &Team, by: &Person, invited: &Person) -> (TeamLink, String) {
        let link = TeamLink::generate(team.id, &mut random).unwrap();
        let body =
            json!({ "inviteId": link.invite().to_string(), "approverId": invited.approver.id });
        by.client()
            .post(&team.path("invitations"), &body)
            .await
            .expect(201);
        let bundles = [invited.device.bundle.clone()];
        let (tenant, keys) = (&self.cluster.tenant, &invited.device.keys);
        let consent = link
            .consent(tenant, &invited.id(), &bundles, at(), keys)
            .unwrap();
        (link, consent.to_text())
    }

    /// Invites somebody, who consents.
    pub async fn agree(&self, team: &Team, by: &Person, invited: &Person) {
        let (_, text) = self.invite(team, by, invited).await;
        invited
            .post(&team.path("consents"), &text)
            .await
            .expect(201);
    }

    /// Invites somebody, who consents and becomes a member.
    pub async fn admit(&self, team: &mut Team, by: &Person, invited: &Person) {
        self.agree(team, by, invited).await;
        team.publish(by, |content| content.seats.push(invited.seat(false)))
            .await;
    }

    /// That a device introduces the enforcer to the team.
    pub fn introduce(&self, team: &Team, by: &Person, at: &str) -> String {
        introduction(
            &self.cluster.tenant,
            team.id,
            (&by.approver.id, &by.device),
            &self.bot.id,
            at,
        )
    }
}

/// That a device introduces an enforcer to a team.
pub fn introduction(
    tenant: &TenantId,
    team: TeamId,
    (approver, device): (&str, &Device),
    enforcer: &str,
    at: &str,
) -> String {
    let statement = json!({
        "v": 1, "statement": "enforcer.introduce", "tenantId": tenant, "teamId": team.to_string(), "approverId": approver,
        "enforcerId": enforcer, "at": at, "by": device.id(), "x25519": device.bundle.encryption_key().to_text(),
    });
    // Members are sorted, and everything is ASCII.
    let statement = statement.to_string();
    let signature = device.signing_key().sign(statement.as_bytes()).to_bytes();
    let signature = Signature::from_bytes(&signature).unwrap().to_text();
    format!("{{\"signature\":\"{signature}\",\"statement\":{statement}}}")
}
