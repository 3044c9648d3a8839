//! The readers of a team, and the way into it.

mod consents;

use std::time::Duration;

use countersign::protocol::team::{MAX_CONSENT_BYTES, MAX_TEAM_INVITATIONS};
use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use super::scene::{Person, TeamScene, random};
use crate::support::{in_time, now, until, with};

const AREAS: [&str; 3] = ["states", "consents", "introductions"];
const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test(flavor = "multi_thread")]
async fn to_others_than_its_readers_there_is_no_team() {
    let scene = TeamScene::new(1).await;
    let (alice, carol) = (&scene.alice, &scene.carol);
    let team = scene.create("payments").await;
    let other_tenant = scene
        .cluster
        .administration
        .create_tenant("other")
        .await
        .unwrap();
    let key = scene
        .cluster
        .key(&other_tenant, RoleName::Admin, None)
        .await;
    let other_admin = scene.cluster.client(Some(&key));
    let other_bot = scene.cluster.enforcer("other-bot").await;
    scene.pair(alice, Some(&team)).await;
    let admin = scene.cluster.admin().await;
    for area in AREAS {
        let path = team.path(area);
        for reader in [
            alice.client(),
            scene.bob.client(),
            &scene.bot.client,
            &admin,
        ] {
            reader.get(&path).await.expect(200);
        }
        for other in [carol.client(), &other_bot.client, &other_admin] {
            other.get(&path).await.refused(404, "NOT_FOUND");
        }
        for unknown in ["AAECAwQFBgcICQoLDA0ODw", "x"] {
            let path = format!("/v1/teams/{unknown}/{area}");
            for caller in [alice.client(), &admin, &scene.bot.client] {
                caller.get(&path).await.refused(404, "NOT_FOUND");
            }
        }
    }
    let next = team.next(&alice.device, |content| content.name = "x".into());
    carol
        .post(&team.path("states"), &next.to_text())
        .await
        .refused(404, "NOT_FOUND");
    let invite = json!({ "inviteId": "AAECAwQFBgcICQoLDA0ODw", "approverId": "carol" });
    let refused = carol
        .client()
        .post(&team.path("invitations"), &invite)
        .await;
    refused.refused(404, "NOT_FOUND");
    let text = scene.introduce(&team, carol, &now());
    carol
        .post(&team.path("introductions"), &text)
        .await
        .refused(404, "NOT_FOUND");
    let list = carol
        .client()
        .get("/v1/approvers/carol/teams")
        .await
        .expect(200)
        .json();
    assert_eq!(list, json!({ "approverId": "carol", "teams": [] }));
    carol
        .client()
        .get("/v1/approvers/alice/teams")
        .await
        .refused(403, "FORBIDDEN");
    // A disabled tenant's team does not change any more, and its members are not known.
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invited_approver_reads_the_states_and_consents_and_nobody_else_does() {
    let scene = TeamScene::new(2).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    let consents = team.path("consents");
    let (link, text) = scene.invite(&team, alice, carol).await;
    let body = json!({ "inviteId": link.invite().to_string(), "approverId": "carol" });
    let invitations = team.path("invitations");
    let again = alice
        .client()
        .post(&invitations, &body)
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&again["inviteId"], &again["approverId"]),
        (&body["inviteId"], &body["approverId"])
    );
    let others = with(&body, "/approverId", json!("dora"));
    alice
        .client()
        .post(&invitations, &others)
        .await
        .refused_at(409, "ALREADY_EXISTS", "/inviteId");
    let bad = with(&body, "/inviteId", json!("short"));
    alice
        .client()
        .post(&invitations, &bad)
        .await
        .refused_at(400, "VALIDATION", "/inviteId");

    carol.client().get(&team.path("states")).await.expect(200);
    for area in ["consents", "introductions"] {
        carol
            .client()
            .get(&team.path(area))
            .await
            .refused(404, "NOT_FOUND");
    }
    // By the invited one alone, for this invitation, signed by the device that it names.
    let whole: Value = serde_json::from_str(&text).unwrap();
    for (pointer, value, status, code, at) in [
        (
            "/statement/at",
            json!(in_time(5)),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            "/statement/by",
            json!(alice.device.id()),
            403,
            "SIGNATURE_INVALID",
            "/statement/by",
        ),
        (
            "/statement/tenantId",
            json!("other"),
            400,
            "VALIDATION",
            "/statement/tenantId",
        ),
        (
            "/statement/teamId",
            json!("AAECAwQFBgcICQoLDA0ODw"),
            400,
            "VALIDATION",
            "/statement/teamId",
        ),
        (
            "/statement/approverId",
            json!("bob"),
            403,
            "FORBIDDEN",
            "/statement/approverId",
        ),
        ("/statement/v", json!(2), 400, "UNSUPPORTED", "/statement/v"),
        ("/extra", json!(2), 400, "VALIDATION", "/extra"),
    ] {
        let text = with(&whole, pointer, value).to_string();
        carol
            .post(&consents, &text)
            .await
            .refused_at(status, code, at);
    }
    let large = format!("{}{text}", " ".repeat(MAX_CONSENT_BYTES));
    carol
        .post(&consents, &large)
        .await
        .refused(413, "TOO_LARGE");
    let dora = Person::new(&scene.cluster, "dora").await;
    let bundles = [dora.device.bundle.clone()];
    let hers = link.consent(
        &scene.cluster.tenant,
        &dora.id(),
        &bundles,
        super::scene::at(),
        &dora.device.keys,
    );
    dora.post(&consents, &hers.unwrap().to_text())
        .await
        .refused(404, "NOT_FOUND");
    let counts = scene.cluster.database.counts().await;
    let made = carol
        .post(&consents, &format!("{text} "))
        .await
        .expect(201)
        .json();
    assert_eq!(
        made,
        json!({ "teamId": team.id.to_string(), "inviteId": link.invite().to_string() })
    );
    carol.post(&consents, &text).await.expect(200);
    assert_eq!(scene.cluster.database.counts().await, counts);
    for reader in [alice, bob] {
        let list = reader.client().get(&consents).await.expect(200);
        assert_eq!(list.json()["teamId"], team.id.to_string());
        // After bob's.
        assert!(list.text.ends_with(&format!(",{text}]}}")), "{}", list.text);
        assert_eq!(list.json()["consents"].as_array().unwrap().len(), 2);
    }

    // The owner's device accepts it and gives a seat: now she reads everything, and invites.
    team.publish(alice, |content| content.seats.push(carol.seat(false)))
        .await;
    for area in AREAS {
        carol.client().get(&team.path(area)).await.expect(200);
    }
    scene.invite(&team, carol, &dora).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_ends_after_a_week_and_is_deleted() {
    let scene = TeamScene::with(1, |config| config.retention.every_seconds = 1).await;
    let (alice, carol) = (&scene.alice, &scene.carol);
    let team = scene.create("payments").await;
    let (_, text) = scene.invite(&team, alice, carol).await;
    carol.post(&team.path("consents"), &text).await.expect(201);
    scene.cluster.pass(DAY * 6 + Duration::from_secs(86_340));
    let (_, later) = scene.invite(&team, alice, carol).await;
    carol.client().get(&team.path("states")).await.expect(200);
    scene.cluster.pass(Duration::from_secs(120));
    carol
        .post(&team.path("consents"), &text)
        .await
        .refused(404, "NOT_FOUND");
    let list = alice
        .client()
        .get(&team.path("consents"))
        .await
        .expect(200)
        .json();
    assert_eq!(list["consents"], json!([]));
    carol.post(&team.path("consents"), &later).await.expect(201);
    until("the old one is gone", Duration::from_secs(10), async || {
        scene
            .cluster
            .database
            .number("select count(*) from team_consents")
            .await
            == 1
    })
    .await;
    let rows = format!(
        "insert into team_consents (tenant_id, team_id, invite_id, approver_id, invited_by, invited_at)
         select tenant_id, team_id, n::text, 'dora', invited_by, invited_at from team_consents, generate_series(2, {MAX_TEAM_INVITATIONS}) n"
    );
    scene.cluster.database.run(&rows).await;
    let link = countersign::e2e::TeamLink::generate(team.id, &mut random).unwrap();
    let body = json!({ "inviteId": link.invite().to_string(), "approverId": "dora" });
    let refused = alice.client().post(&team.path("invitations"), &body).await;
    assert_eq!(
        refused.refused(422, "TOO_LARGE").detail("limit"),
        MAX_TEAM_INVITATIONS
    );
    scene
        .bob
        .client()
        .post(&team.path("invitations"), &body)
        .await
        .expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_introduction_to_a_team_is_an_owners_and_lasts_as_long_as_the_pairing() {
    let scene = TeamScene::new(2).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    scene.admit(&mut team, alice, carol).await;
    let path = team.path("introductions");
    let text = scene.introduce(&team, alice, &now());
    alice
        .post(&path, &text)
        .await
        .refused_at(403, "POLICY_DENY", "/statement/enforcerId");
    let token = scene.pair(alice, Some(&team)).await;
    let made = alice.post(&path, &text).await.expect(201).json();
    assert_eq!(made["deviceId"], alice.device.id());
    alice.post(&path, &text).await.expect(200);
    bob.post(&path, &scene.introduce(&team, bob, &now()))
        .await
        .expect(201);
    let by_member = scene.introduce(&team, carol, &now());
    carol
        .post(&path, &by_member)
        .await
        .refused_at(403, "SIGNATURE_INVALID", "/statement/by");
    let whole: Value = serde_json::from_str(&text).unwrap();
    for (pointer, value, status, code, at) in [
        (
            "/statement/enforcerId",
            json!("another"),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            "/statement/teamId",
            json!("AAECAwQFBgcICQoLDA0ODw"),
            400,
            "VALIDATION",
            "/statement/teamId",
        ),
        (
            "/statement/tenantId",
            json!("other"),
            400,
            "VALIDATION",
            "/statement/tenantId",
        ),
        (
            "/statement/approverId",
            json!("bob"),
            403,
            "FORBIDDEN",
            "/statement/approverId",
        ),
        (
            "/statement/at",
            json!(in_time(900)),
            400,
            "TIMESTAMP",
            "/statement/at",
        ),
    ] {
        let text = with(&whole, pointer, value).to_string();
        alice.post(&path, &text).await.refused_at(status, code, at);
    }
    // It is no introduction to the devices of one approver.
    let own = "/v1/approvers/alice/introductions";
    alice
        .post(own, &text)
        .await
        .refused_at(400, "VALIDATION", "/statement/teamId");
    let listed = async || {
        let list = carol.client().get(&path).await.expect(200).json();
        list["introductions"].as_array().unwrap().len()
    };
    assert_eq!(listed().await, 2);
    // Bob is no owner any more, and then the enforcer is paired anew.
    team.publish(alice, |content| {
        content.seat_mut(&bob.id()).unwrap().owner = false;
    })
    .await;
    assert_eq!(listed().await, 1);
    scene.pair(alice, Some(&team)).await;
    assert_eq!(listed().await, 0);
    alice.post(&path, &text).await.expect(201);
    let revoke = json!({ "routingToken": token });
    alice
        .client()
        .post("/v1/pairing/revoke", &revoke)
        .await
        .expect(200);
    assert_eq!(listed().await, 1, "that token was replaced");
    let token = scene.pair(alice, Some(&team)).await;
    alice.post(&path, &text).await.expect(201);
    let revoke = json!({ "routingToken": token });
    scene
        .bot
        .client
        .post("/v1/pairing/revoke", &revoke)
        .await
        .expect(200);
    assert_eq!(listed().await, 0);
    let rows = "select count(*) from team_introductions";
    assert_eq!(scene.cluster.database.number(rows).await, 0);
}
