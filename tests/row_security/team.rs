//! A team from its first state to the end of its pairing.

use countersign::e2e::{SignedTeamState, TeamSeat};
use countersign::protocol::id::{ApproverId, TenantId, TextId as _};
use reqwest::Method;
use serde_json::json;

use crate::support::devices::Device;
use crate::support::{Client, now};
use crate::teams::scene::{at, first_state, introduction};

/// A team of one, which gets a name and an enforcer, and invites somebody.
pub async fn live(tenant: &TenantId, client: &Client, bot: &Client) {
    let phone = Device::new("phone");
    let seat = TeamSeat {
        approver: ApproverId::parse("alice").unwrap(),
        owner: true,
        devices: vec![phone.bundle.clone()],
        stand_in: None,
    };
    let first = first_state(tenant, "payments", vec![seat], &phone);
    let mut content = first.state().content().clone();
    content.name = "payroll".into();
    let next = first.state().next(&content, at()).unwrap();
    let next = SignedTeamState::sign(next, &phone.keys).unwrap();
    let team = format!("/v1/teams/{}", next.state().head().team);
    let states = format!("{team}/states");
    for (path, state) in [("/v1/teams", &first), (&*states, &next)] {
        for status in [201, 200] {
            let call = client.call(Method::POST, path).text(&state.to_text());
            call.send().await.expect(status);
        }
    }
    let begin = json!({ "enforcerId": "build-bot" });
    let begun = bot.post("/v1/pairing/initiate", &begin).await.expect(200);
    let complete = json!({
        "nonce": begun.json()["nonce"], "approverId": "alice", "teamId": next.state().head().team.to_string(),
    });
    client
        .post("/v1/pairing/complete", &complete)
        .await
        .expect(200);
    let listed = bot.get(&states).await.expect(200).json();
    assert_eq!(listed["states"].as_array().unwrap().len(), 2);
    let invite = json!({ "inviteId": "AAECAwQFBgcICQoLDA0ODw", "approverId": "dora" });
    client
        .post(&format!("{team}/invitations"), &invite)
        .await
        .expect(201);
    let introduced = introduction(
        tenant,
        next.state().head().team,
        ("alice", &phone),
        "build-bot",
        &now(),
    );
    let call = client.call(Method::POST, &format!("{team}/introductions"));
    call.text(&introduced).send().await.expect(201);
    // Paired anew, so that the token of the pairing before ends.
    let begun = bot.post("/v1/pairing/initiate", &begin).await.expect(200);
    let mut again = complete;
    again["nonce"] = begun.json()["nonce"].clone();
    client
        .post("/v1/pairing/complete", &again)
        .await
        .expect(200);
    let call = client.call(Method::POST, &format!("{team}/introductions"));
    call.text(&introduced).send().await.expect(201);
}
