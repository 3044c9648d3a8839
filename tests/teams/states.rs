//! The chain of a team's states: what is kept, listed and refused.

use countersign::e2e::{SignedTeamState, StandIn};
use countersign::protocol::team::{MAX_TEAM_STATE_BYTES, MAX_TEAMS};
use countersign::protocol::timestamp::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;

use super::scene::{Person, Team, TeamScene, first_state};
use crate::support::devices::Device;
use crate::support::with;

#[tokio::test(flavor = "multi_thread")]
async fn states_are_kept_in_order_and_listed_byte_for_byte_from_where_the_reader_is() {
    let scene = TeamScene::new(2).await;
    let (alice, bob) = (&scene.alice, &scene.bob);
    let first = scene.first("payments");
    let id = first.state().head().team;
    let odd = first
        .to_text()
        .replace("\"payments\"", "\"p\\u0061yments\"");
    let made = alice
        .post("/v1/teams", &format!(" {odd}\n"))
        .await
        .expect(201);
    assert_eq!(made.json(), first.state().head().to_json());
    let counts = scene.cluster.database.counts().await;
    for text in [&odd, &first.to_text()] {
        let again = alice.post("/v1/teams", text).await.expect(200);
        assert_eq!(again.json(), first.state().head().to_json());
    }
    assert_eq!(scene.cluster.database.counts().await, counts);

    let mut team = Team {
        state: first.state().clone(),
        id,
    };
    let states = team.path("states");
    scene.agree(&team, alice, bob).await;
    team.publish(alice, |content| content.seats.push(bob.seat(true)))
        .await;
    team.publish(bob, |content| content.name = "payroll".into())
        .await;
    let listed = alice.client().get(&states).await.expect(200);
    let tag = listed.header("etag").unwrap().to_owned();
    let list = listed.json();
    assert_eq!(list["head"], team.head());
    assert_eq!(list["teamId"], id.to_string());
    assert!(
        listed.text.contains(&format!("\"states\":[{odd},")),
        "{}",
        listed.text
    );
    let after = async |seq: u32| {
        let list = bob.client().get(&format!("{states}?after={seq}")).await;
        let list = list.expect(200).json();
        assert_eq!(list["head"], team.head());
        list["states"].as_array().unwrap().len()
    };
    assert_eq!(
        (
            list["states"].as_array().unwrap().len(),
            after(0).await,
            after(1).await,
            after(60_000).await
        ),
        (3, 2, 1, 0)
    );
    for bad in ["-1", "x", "", "65536"] {
        let refused = bob.client().get(&format!("{states}?after={bad}")).await;
        assert_eq!(
            refused.refused(400, "VALIDATION").detail("parameter"),
            "after"
        );
    }
    let ask = async || {
        let call = scene.bob.client().call(Method::GET, &states);
        call.header("If-None-Match", &tag).send().await
    };
    assert_eq!(ask().await.expect(304).header("etag"), Some(&*tag));
    team.publish(alice, |content| content.name = "payments".into())
        .await;
    ask().await.expect(200);

    let teams = alice
        .client()
        .get("/v1/approvers/alice/teams")
        .await
        .expect(200)
        .json();
    let mut line = team.head();
    line["name"] = json!("payments");
    line["owner"] = json!(true);
    assert_eq!(teams, json!({ "approverId": "alice", "teams": [line] }));
    let audit = "select string_agg(concat_ws(' ', action, detail, actor), '|' order by at) from audit_events where subject like '_%' and action like 'team.%'";
    assert_eq!(
        scene.cluster.database.text(audit).await,
        "team.created state 0 approver:alice|team.invited approver bob approver:alice|team.changed state 1 approver:alice|\
         team.changed state 2 approver:bob|team.changed state 3 approver:alice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_taken_or_left_out_is_refused_with_the_newest_state() {
    let scene = TeamScene::new(2).await;
    let (alice, bob) = (&scene.alice, &scene.bob);
    let mut team = scene.create("payments").await;
    let states = team.path("states");
    let fork = team.next(&bob.device, |content| content.name = "forked".into());
    let own = team.next(&alice.device, |content| content.name = "own".into());
    team.publish(alice, |content| content.name = "payroll".into())
        .await;
    let mut ahead = scene.create("other").await;
    ahead.state = team.next(&alice.device, |_| {}).state().clone();
    let ahead = ahead.next(&alice.device, |_| {});
    for state in [&fork, &own, &ahead] {
        let refused = bob.post(&states, &state.to_text()).await;
        let refused = refused.refused_at(409, "TEAM_STATE_TAKEN", "/statement/seq");
        assert_eq!(refused.detail("head"), team.head());
    }
    assert_eq!(
        scene
            .cluster
            .database
            .number("select count(*) from team_states where seq > 1")
            .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_may_change_the_team_change_it() {
    let scene = TeamScene::new(1).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    scene.admit(&mut team, alice, carol).await;
    let states = team.path("states");
    let any = scene.any_approver().await;
    let counts = scene.cluster.database.counts().await;
    let stranger = Device::new("stranger");
    // Not by a member, not by a stranger's device, not with another's signature, not after another state.
    let by_member = team.next(&carol.device, |content| content.minimum.approvals = 2);
    let by_stranger = team.next(&stranger, |content| content.name = "theirs".into());
    let others = team
        .next(&alice.device, |content| content.name = "others".into())
        .to_text();
    let others: Value = serde_json::from_str(&others).unwrap();
    let swapped = with(&others, "/statement/name", json!("swapped")).to_string();
    let wrong = with(&others, "/statement/prev", json!("0".repeat(64)));
    for text in [
        by_member.to_text(),
        by_stranger.to_text(),
        swapped,
        wrong.to_string(),
    ] {
        let refused = alice.post(&states, &text).await;
        refused.refused_at(403, "POLICY_DENY", "/statement");
    }
    // Malformed, for others, by nobody in particular.
    for (pointer, value, code, at) in [
        ("/statement/v", json!(2), "UNSUPPORTED", "/statement/v"),
        (
            "/statement/at",
            json!("today"),
            "TIMESTAMP",
            "/statement/at",
        ),
        (
            "/statement/tenantId",
            json!("other"),
            "VALIDATION",
            "/statement/tenantId",
        ),
        (
            "/statement/teamId",
            json!("AAECAwQFBgcICQoLDA0ODw"),
            "VALIDATION",
            "/statement/teamId",
        ),
        (
            "/statement/extra",
            json!(1),
            "VALIDATION",
            "/statement/extra",
        ),
        ("/statement/changes", json!(3), "VALIDATION", "/statement"),
        (
            "/statement/seats/0/devices",
            json!(["x"]),
            "VALIDATION",
            "/statement",
        ),
        ("/signatures", json!([]), "VALIDATION", "/signatures"),
    ] {
        let text = with(&others, pointer, value).to_string();
        alice.post(&states, &text).await.refused_at(400, code, at);
    }
    let first = scene.first("another").to_text();
    carol
        .post("/v1/teams", &first)
        .await
        .refused_at(403, "POLICY_DENY", "/statement/seats");
    let unsigned =
        SignedTeamState::sign(scene.first("another").state().clone(), &stranger.keys).unwrap();
    alice
        .post("/v1/teams", &unsigned.to_text())
        .await
        .refused_at(403, "POLICY_DENY", "/statement");
    alice
        .post("/v1/teams", &others.to_string())
        .await
        .refused_at(400, "VALIDATION", "/statement/seq");
    for (path, text) in [
        ("/v1/teams", &first),
        (states.as_str(), &others.to_string()),
    ] {
        let call = any.call(Method::POST, path).text(text);
        call.send().await.refused(403, "FORBIDDEN");
    }
    let large = format!("{}{}", " ".repeat(MAX_TEAM_STATE_BYTES), others);
    let refused = alice.post(&states, &large).await.refused(413, "TOO_LARGE");
    assert_eq!(refused.detail("limit"), MAX_TEAM_STATE_BYTES);
    assert_eq!(scene.cluster.database.counts().await, counts);

    // A member changes the own seat, and leaves.
    let tablet = Device::new("tablet");
    let dora = Person::new(&scene.cluster, "dora").await;
    let from = Timestamp::parse("2026-02-21T12:00:00Z").unwrap();
    let until = (from.inner() + Duration::days(3)).into();
    scene.agree(&team, carol, &dora).await;
    team.publish(carol, |content| {
        let seat = content.seat_mut(&carol.id()).unwrap();
        seat.devices.push(tablet.bundle);
        let devices = vec![dora.device.bundle.clone()];
        seat.stand_in = Some(StandIn {
            approver: dora.id(),
            devices,
            from,
            until,
        });
    })
    .await;
    dora.client().get(&states).await.expect(200);
    let listed = dora
        .client()
        .get("/v1/approvers/dora/teams")
        .await
        .expect(200)
        .json();
    assert_eq!(listed["teams"][0]["owner"], false);
    team.publish(carol, |content| {
        content.seats.retain(|seat| seat.approver != carol.id());
    })
    .await;
    for gone in [carol, &dora] {
        gone.client().get(&states).await.refused(404, "NOT_FOUND");
        gone.post(&states, &others.to_string())
            .await
            .refused(404, "NOT_FOUND");
    }
    bob.client().get(&states).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_creates_only_so_many_teams_whoever_else_it_owns_teams_of() {
    let scene = TeamScene::new(1).await;
    let (alice, bob) = (&scene.alice, &scene.bob);
    let first = scene.first("payments");
    alice.post("/v1/teams", &first.to_text()).await.expect(201);
    let mut team = Team {
        state: first.state().clone(),
        id: first.state().head().team,
    };
    let copies = format!(
        "insert into team_states (tenant_id, team_id, seq, digest, name, published_by, signed, accepted_at)
         select tenant_id, n::text, seq, digest, name, published_by, signed, accepted_at
           from team_states, generate_series(2, {MAX_TEAMS}) n"
    );
    scene.cluster.database.run(&copies).await;
    let more = scene.first("more").to_text();
    let refused = alice.post("/v1/teams", &more).await;
    assert_eq!(refused.refused(422, "TOO_LARGE").detail("limit"), MAX_TEAMS);
    alice.post("/v1/teams", &first.to_text()).await.expect(200);
    // Those that exist change as before. Bob, an owner of one, creates his own.
    scene.agree(&team, alice, bob).await;
    team.publish(alice, |content| content.seats.push(bob.seat(true)))
        .await;
    let seats = vec![bob.seat(true)];
    let by_bob = first_state(&scene.cluster.tenant, "bob's", seats, &bob.device);
    bob.post("/v1/teams", &by_bob.to_text()).await.expect(201);
    // An owner who leaves has created the team all the same.
    team.publish(bob, |content| {
        content.seats.retain(|seat| seat.approver == bob.id());
    })
    .await;
    alice
        .post("/v1/teams", &more)
        .await
        .refused(422, "TOO_LARGE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_later_teams_leaves_the_first_ones_in_the_list() {
    let scene = TeamScene::new(1).await;
    let alice = &scene.alice;
    let mut team = scene.create("payments").await;
    team.publish(alice, |content| content.name = "payroll".into())
        .await;
    let (flood, number) = ("lpad(n::text, 21, '-') || 'A'", 1_000);
    let states = format!(
        "insert into team_states (tenant_id, team_id, seq, digest, name, published_by, signed, accepted_at)
         select tenant_id, {flood}, 0, digest, 'flood', 'mallory', signed, accepted_at
           from team_states, generate_series(1, {number}) n where seq = 0"
    );
    let seats = format!(
        "insert into team_seats (tenant_id, team_id, approver_id, seat, seated_at)
         select tenant_id, {flood}, approver_id, seat, seated_at + interval '1 second'
           from team_seats, generate_series(1, {number}) n where approver_id = 'alice'"
    );
    for rows in [states, seats] {
        scene.cluster.database.run(&rows).await;
    }
    let path = "/v1/approvers/alice/teams";
    let list = alice.client().get(path).await.expect(200).json();
    let mut line = team.head();
    line["name"] = json!("payroll");
    line["owner"] = json!(true);
    assert_eq!(list["teams"][0], line);
    assert_eq!(list["teams"].as_array().unwrap().len(), 256);
}
