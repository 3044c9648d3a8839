//! An enforcer that is paired with a team is paired with its people, and stays so.

use std::time::Duration;

use countersign::e2e::StandIn;
use countersign::protocol::timestamp::Timestamp;
use serde_json::{Value, json};

use super::scene::{Person, TeamScene};
use crate::support::{Answer, envelope, request_id, sealed, until};

async fn submit(scene: &TeamScene, approvers: Option<&[&str]>) -> Answer {
    let mut body = sealed();
    if let Some(ids) = approvers {
        body["metadata"] = json!({ "approverIds": ids, "kept": 1 });
    }
    let sender = json!({ "enforcerId": scene.bot.id });
    let message = envelope("artifact.submit", &request_id(), sender, body);
    scene.bot.client.post("/v1/artifacts", &message).await
}

async fn revoke(by: &crate::support::Client, token: &str) -> Answer {
    let body = json!({ "routingToken": token });
    by.post("/v1/pairing/revoke", &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_people_of_the_newest_state_are_paired_and_direct_pairings_stay() {
    let scene = TeamScene::new(3).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    let direct = scene.pair(bob, None).await;
    let begun = scene
        .answer(&scene.bot, alice, Some(&team))
        .await
        .expect(200)
        .json();
    assert_eq!(begun["enforcerLabel"], "Build bot");
    assert_eq!(scene.paired().await, "alice* bob");
    scene.admit(&mut team, alice, carol).await;
    assert_eq!(scene.paired().await, "alice* bob carol*");
    let dora = Person::new(&scene.cluster, "dora").await;
    scene.agree(&team, carol, &dora).await;
    team.publish(carol, |content| {
        let [from, until] = ["2026-02-21T12:00:00Z", "2026-02-24T12:00:00Z"];
        let [from, until] = [from, until].map(|text| Timestamp::parse(text).unwrap());
        let devices = vec![dora.device.bundle.clone()];
        let stand_in = StandIn {
            approver: dora.id(),
            devices,
            from,
            until,
        };
        content.seat_mut(&carol.id()).unwrap().stand_in = Some(stand_in);
    })
    .await;
    assert_eq!(scene.paired().await, "alice* bob carol* dora*");
    let seen = dora.client().get("/v1/pairings").await.expect(200).json();
    assert_eq!(
        (
            &seen["items"][0]["enforcerLabel"],
            &seen["items"][0]["teamId"]
        ),
        (&json!("Build bot"), &json!(team.id.to_string()))
    );

    // The direct pairing gives way to the team's, and comes back in its place.
    revoke(bob.client(), &direct).await.expect(200);
    assert_eq!(scene.paired().await, "alice* bob* carol* dora*");
    scene.pair(bob, None).await;
    assert_eq!(scene.paired().await, "alice* bob carol* dora*");
    team.publish(alice, |content| {
        content.seats.retain(|seat| seat.approver == alice.id());
    })
    .await;
    assert_eq!(scene.paired().await, "alice* bob");
    for gone in [carol, &dora] {
        let listed = gone.client().get("/v1/pairings").await.expect(200).json();
        assert_eq!(listed["items"], json!([]));
    }
    // Pages of a list go through rows that were written at once.
    for person in [carol, &dora] {
        scene.agree(&team, alice, person).await;
    }
    team.publish(alice, |content| {
        content.seats.extend([carol.seat(false), dora.seat(false)]);
    })
    .await;
    let mut names: Vec<Value> = Vec::new();
    let mut cursor = String::new();
    while names.len() < 10 {
        let page = scene
            .bot
            .client
            .get(&format!("/v1/pairings?limit=1{cursor}"))
            .await;
        let page = page.expect(200).json();
        names.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["approverId"].clone()),
        );
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(names.len(), 4, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_teams_pairing_ends_with_its_token_and_leaves_the_direct_ones() {
    let scene = TeamScene::new(2).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    let other = scene.create("oncall").await;
    scene.admit(&mut team, alice, carol).await;
    scene.pair(bob, None).await;
    // Not for somebody who is no owner, and the attempt is still open afterwards.
    let begin = json!({ "enforcerId": "build-bot" });
    let begun = scene
        .bot
        .client
        .post("/v1/pairing/initiate", &begin)
        .await
        .expect(200)
        .json();
    let nonce = begun["nonce"].as_str().unwrap();
    let answer = |by: &Person| json!({ "nonce": nonce, "approverId": by.approver.id, "teamId": team.id.to_string() });
    let complete = "/v1/pairing/complete";
    carol
        .client()
        .post(complete, &answer(carol))
        .await
        .refused_at(403, "POLICY_DENY", "/teamId");
    let mut unknown = answer(alice);
    unknown["teamId"] = json!("AAECAwQFBgcICQoLDA0ODw");
    alice
        .client()
        .post(complete, &unknown)
        .await
        .refused_at(403, "POLICY_DENY", "/teamId");
    let done = bob
        .client()
        .post(complete, &answer(bob))
        .await
        .expect(200)
        .json();
    let token = done["routingToken"].as_str().unwrap().to_owned();
    let status = format!("/v1/pairing/status/{nonce}");
    let seen = scene.bot.client.get(&status).await.expect(200).json();
    assert_eq!(
        (&seen["status"], &seen["approverId"], &seen["routingToken"]),
        (&json!("completed"), &json!("bob"), &json!(token))
    );
    alice
        .client()
        .post(complete, &answer(alice))
        .await
        .refused(409, "INVALID_STATE");
    assert_eq!(scene.paired().await, "alice* bob carol*");

    // The other team still pairs alice when the first one's pairing ends.
    scene.pair(alice, Some(&other)).await;
    revoke(alice.client(), &token)
        .await
        .refused(404, "NOT_FOUND");
    revoke(bob.client(), &token).await.expect(200);
    assert_eq!(scene.paired().await, "alice* bob");
    revoke(bob.client(), &token).await.expect(200);
    let seen = scene.bot.client.get(&status).await.expect(200).json();
    assert_eq!(seen["routingToken"], Value::Null);
    scene
        .bot
        .client
        .get(&team.path("states"))
        .await
        .refused(404, "NOT_FOUND");
    scene
        .bot
        .client
        .get(&other.path("states"))
        .await
        .expect(200);

    // An owner of former times does not end it; the enforcer does.
    let token = scene.pair(bob, Some(&team)).await;
    team.publish(alice, |content| {
        content.seat_mut(&bob.id()).unwrap().owner = false;
    })
    .await;
    revoke(bob.client(), &token).await.refused(404, "NOT_FOUND");
    assert_eq!(scene.paired().await, "alice* bob carol*");
    revoke(&scene.bot.client, &token).await.expect(200);
    assert_eq!(scene.paired().await, "alice* bob");
    let audit = "select string_agg(concat_ws(' ', subject, split_part(detail, ' ', 1), actor), '|' order by at)
                   from audit_events where action = 'pairing.revoked'";
    assert_eq!(
        scene.cluster.database.text(audit).await,
        "build-bot/bob team approver:bob|build-bot/bob team enforcer:build-bot"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_a_team_are_asked_by_name_and_only_while_they_are_in_it() {
    let scene = TeamScene::with(2, |config| config.pairing.required = true).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    let unpaired = submit(&scene, Some(&["alice", "bob"])).await;
    unpaired.refused_at(403, "POLICY_DENY", "/body/metadata/approverIds");
    let token = scene.pair(alice, Some(&team)).await;
    scene.admit(&mut team, alice, carol).await;
    // Nobody is paired directly, and the team's token routes nothing.
    submit(&scene, None).await.refused(422, "NO_APPROVER");
    let mut body = sealed();
    body["metadata"] = json!({ "routingToken": token });
    let sender = json!({ "enforcerId": "build-bot" });
    let message = envelope("artifact.submit", &request_id(), sender, body);
    scene
        .bot
        .client
        .post("/v1/artifacts", &message)
        .await
        .refused(403, "PAIRING_REVOKED");

    submit(&scene, Some(&["carol", "alice"])).await.expect(202);
    for person in [alice, carol] {
        let inbox = person.approver.inbox("").await.expect(200).json();
        let metadata = &inbox["body"]["items"][0]["body"]["metadata"];
        assert_eq!(metadata, &json!({ "kept": 1 }), "{inbox}");
    }
    assert!(bob.approver.inbox_ids().await.is_empty());
    scene
        .bot
        .submit(&request_id(), "carol", sealed())
        .await
        .expect(202);
    for ids in [
        json!([]),
        json!(["alice", "alice"]),
        json!("alice"),
        json!([1]),
        json!(vec!["x"; 65]),
    ] {
        let mut body = sealed();
        body["metadata"] = json!({ "approverIds": ids });
        let sender = json!({ "enforcerId": "build-bot" });
        let message = envelope("artifact.submit", &request_id(), sender, body);
        let refused = scene.bot.client.post("/v1/artifacts", &message).await;
        refused.refused_at(400, "VALIDATION", "/body/metadata/approverIds");
    }
    // She prompts the agent, until she leaves.
    let prompt = async || {
        let id = request_id();
        let mut prompt = json!({
            "requestId": id, "artifactType": "prompt.send", "createdAt": crate::support::now(), "target": "agentChat",
            "text": "Why?", "promptHashAlg": "SHA-256", "metadata": { "enforcerId": "build-bot" },
        });
        prompt["promptHash"] = json!(crate::support::hash_of(&prompt.to_string(), "promptHash"));
        carol.client().post("/v1/prompt", &prompt).await
    };
    prompt().await.expect(202);
    team.publish(carol, |content| {
        content.seats.retain(|seat| seat.approver != carol.id());
    })
    .await;
    prompt().await.refused(403, "FORBIDDEN");
    submit(&scene, Some(&["carol", "alice"]))
        .await
        .refused(403, "POLICY_DENY");
    scene
        .bot
        .submit(&request_id(), "carol", sealed())
        .await
        .refused(403, "POLICY_DENY");
    submit(&scene, Some(&["bob", "alice"])).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pairing_that_retention_deletes_comes_back_with_the_seat() {
    let scene = TeamScene::with(1, |config| {
        config.retention.every_seconds = 1;
        config.retention.pairing_seconds = 60;
    })
    .await;
    let (alice, carol) = (&scene.alice, &scene.carol);
    let mut team = scene.create("payments").await;
    scene.pair(alice, Some(&team)).await;
    scene.admit(&mut team, alice, carol).await;
    team.publish(alice, |content| {
        content.seats.retain(|seat| seat.approver != carol.id());
    })
    .await;
    scene.cluster.pass(Duration::from_secs(120));
    until("the row is gone", Duration::from_secs(10), async || {
        scene
            .cluster
            .database
            .number("select count(*) from pairings")
            .await
            == 2
    })
    .await;
    scene.admit(&mut team, alice, carol).await;
    assert_eq!(scene.paired().await, "alice* bob* carol*");
}
