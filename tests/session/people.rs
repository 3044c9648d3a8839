//! Writers and readers of a session.

use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use super::{FRAMES, Frame, end, outcome, read, report, seen, snapshot, start, status};
use crate::support::{Client, Cluster, hash_of};

/// A client of the cluster's own tenant.
async fn client(cluster: &Cluster, role: RoleName, bound: Option<&str>) -> Client {
    cluster.client(Some(&cluster.key(&cluster.tenant, role, bound).await))
}

/// Pairs an enforcer with an approver.
async fn pair(cluster: &Cluster, tenant: &str, enforcer: &str, approver: &str) {
    let insert = format!(
        "insert into pairings (tenant_id, enforcer_id, approver_id, nonce, token_hash, paired_at)
         values ('{tenant}', '{enforcer}', '{approver}', 'nonce', '\\x00', now())"
    );
    cluster.database.run(&insert).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_the_enforcer_that_opened_it() {
    let cluster = Cluster::start(3).await;
    let bot = client(&cluster, RoleName::Enforcer, Some("build-bot")).await;
    let other = client(&cluster, RoleName::Enforcer, Some("other-bot")).await;
    let any = client(&cluster, RoleName::Enforcer, None).await;
    report(&bot, &start("s", 0)).await.expect(202);
    let before = cluster.database.everything().await;
    let events = [
        start("s", 0),
        status("s", "idle", 5),
        snapshot("s", "one", 5),
        end("s", 5),
    ];
    for event in &events {
        for frame in FRAMES {
            let answer = report(&other, &frame.wrap(event, "other-bot")).await;
            answer.refused_at(403, "FORBIDDEN", &frame.at("/sessionId"));
        }
        let answer = report(&any, &Frame::Wire.wrap(event, "third-bot")).await;
        answer.refused_at(403, "FORBIDDEN", "/body/sessionId");
        // Nor does a credential for one act as another.
        for (frame, pointer) in [
            (Frame::Core, "/sender/deviceId"),
            (Frame::Wire, "/sender/enforcerId"),
        ] {
            let answer = report(&other, &frame.wrap(event, "build-bot")).await;
            answer.refused_at(403, "FORBIDDEN", pointer);
        }
    }
    assert_eq!(cluster.database.everything().await, before);
    report(&bot, &end("s", 9)).await.expect(202);
    for event in &events {
        let answer = report(&other, event).await;
        answer.refused_at(403, "FORBIDDEN", "/sessionId");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_event_says_who_sends_it_or_the_session_does() {
    let cluster = Cluster::start(3).await;
    let any = client(&cluster, RoleName::Enforcer, None).await;
    let named = |mut event: Value, enforcer: Value| {
        event["metadata"] = json!({ "enforcerId": enforcer });
        if event.get("snapshotHash").is_some() {
            event["snapshotHash"] = json!(hash_of(&event.to_string(), "snapshotHash"));
        }
        event
    };
    for event in [
        start("s", 0),
        status("s", "idle", 1),
        snapshot("s", "one", 1),
        end("s", 1),
    ] {
        report(&any, &event).await.refused_at(400, "VALIDATION", "");
    }
    let bad = named(start("s", 0), json!("a\nb"));
    let answer = report(&any, &bad).await;
    answer.refused_at(400, "VALIDATION", "/metadata/enforcerId");
    let answer = report(&any, &named(start("s", 0), json!(7))).await;
    answer.refused_at(400, "VALIDATION", "/metadata/enforcerId");

    report(&any, &named(start("s", 0), json!("build-bot")))
        .await
        .expect(202);
    assert_eq!(seen(&any, "s").await["enforcerId"], "build-bot");
    // From now on the session says whose it is.
    for event in [status("s", "editing", 1), snapshot("s", "one", 1)] {
        report(&any, &event).await.expect(202);
    }
    let answer = report(&any, &named(snapshot("s", "two", 1), json!("other-bot"))).await;
    answer.refused_at(403, "FORBIDDEN", "/sessionId");
    let answer = report(&any, &start("s", 0)).await;
    assert_eq!(outcome(&answer), "409 ALREADY_EXISTS");
    // An Envelope has a place for the sender.
    let mut nameless = Frame::Wire.wrap(&status("s", "idle", 2), "");
    nameless["sender"] = json!({});
    let answer = report(&any, &nameless).await;
    answer.refused_at(400, "VALIDATION", "/sender/enforcerId");
    nameless["sender"] = json!({ "approverId": "alice" });
    let answer = report(&any, &nameless).await;
    answer.refused_at(403, "FORBIDDEN", "/sender/approverId");
    let mut human = Frame::Core.wrap(&status("s", "idle", 2), "alice");
    human["sender"]["actor"] = json!("MA");
    let answer = report(&any, &human).await;
    answer.refused_at(403, "FORBIDDEN", "/sender/deviceId");

    // A bound credential is its own answer, whatever metadata says.
    let bot = client(&cluster, RoleName::Enforcer, Some("build-bot")).await;
    report(&bot, &named(start("t", 0), json!("other-bot")))
        .await
        .expect(202);
    let session = seen(&bot, "t").await;
    assert_eq!(session["enforcerId"], "build-bot");
    assert_eq!(session["metadata"], json!({ "enforcerId": "other-bot" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_read_by_its_enforcer_the_paired_approvers_and_administrators() {
    let cluster = Cluster::start(3).await;
    let tenant = cluster.tenant.to_string();
    let bot = client(&cluster, RoleName::Enforcer, Some("build-bot")).await;
    let other = client(&cluster, RoleName::Enforcer, Some("other-bot")).await;
    let any_bot = client(&cluster, RoleName::Enforcer, None).await;
    let alice = client(&cluster, RoleName::Approver, Some("alice")).await;
    let bob = client(&cluster, RoleName::Approver, Some("bob")).await;
    let anyone = client(&cluster, RoleName::Approver, None).await;
    let admin = cluster.admin().await;
    report(&bot, &start("s", 0)).await.expect(202);
    let statuses = async || {
        let mut statuses = Vec::new();
        for reader in [&bot, &any_bot, &admin, &other, &alice, &bob, &anyone] {
            let answer = read(reader, "s").await;
            if answer.status == 404 {
                let unknown = read(reader, "nothing").await.refused(404, "NOT_FOUND");
                assert_eq!(answer.json(), unknown.json());
            }
            statuses.push(answer.status);
        }
        statuses
    };
    assert_eq!(statuses().await, [200, 200, 200, 404, 404, 404, 404]);
    // Paired with someone else, elsewhere: no.
    pair(&cluster, &tenant, "other-bot", "bob").await;
    pair(&cluster, "elsewhere", "build-bot", "bob").await;
    assert_eq!(statuses().await, [200, 200, 200, 404, 404, 404, 404]);
    pair(&cluster, &tenant, "build-bot", "alice").await;
    assert_eq!(statuses().await, [200, 200, 200, 404, 200, 404, 200]);
    let revoke = "update pairings set revoked_at = now() where approver_id = 'alice'";
    cluster.database.run(revoke).await;
    assert_eq!(statuses().await, [200, 200, 200, 404, 404, 404, 404]);
    read(&cluster.operator(), "s")
        .await
        .refused(403, "FORBIDDEN");
    for reporter in [&alice, &admin, &cluster.operator()] {
        let answer = report(reporter, &status("s", "idle", 1)).await;
        answer.refused(403, "FORBIDDEN");
    }
    for odd in ["%00", "a%0Ab", &"x".repeat(129)] {
        read(&bot, odd).await.refused(404, "NOT_FOUND");
    }
    // Anything that can be an id can be read, if need be escaped.
    for (odd, escaped) in [
        ("a/b?c=ü %", "a%2Fb%3Fc=%C3%BC%20%25"),
        ("event", "%65vent"),
    ] {
        report(&bot, &start(odd, 0)).await.expect(202);
        assert_eq!(seen(&bot, escaped).await["sessionId"], odd);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_have_sessions_of_their_own_under_the_same_id() {
    let cluster = Cluster::start(2).await;
    let there = cluster
        .administration
        .create_tenant("strangers")
        .await
        .unwrap();
    let bot = client(&cluster, RoleName::Enforcer, Some("build-bot")).await;
    let key = |role, bound| cluster.key(&there, role, bound);
    let stranger = cluster.client(Some(&key(RoleName::Enforcer, Some("build-bot")).await));
    let strange_any = cluster.client(Some(&key(RoleName::Enforcer, None).await));
    let strange_admin = cluster.client(Some(&key(RoleName::Admin, None).await));
    for event in [start("s", 0), snapshot("s", "one", 1), end("s", 2)] {
        report(&bot, &event).await.expect(202);
    }
    for reader in [&stranger, &strange_any, &strange_admin] {
        let answer = read(reader, "s").await.refused(404, "NOT_FOUND");
        assert_eq!(answer.json(), read(reader, "t").await.json());
    }
    // Not even by asking whose it is.
    let answer = report(&strange_any, &status("s", "idle", 3)).await;
    answer.refused_at(400, "VALIDATION", "");
    let before = seen(&bot, "s").await;
    for event in [
        status("s", "planning", 3),
        super::hashed(crate::support::with(
            &snapshot("s", "one", 4),
            "/payload",
            json!({}),
        )),
    ] {
        assert_eq!(outcome(&report(&stranger, &event).await), "202");
    }
    assert_eq!(seen(&bot, "s").await, before);
    let theirs = seen(&strange_admin, "s").await;
    assert_eq!(theirs["state"], "planning");
    assert_eq!(theirs["snapshots"].as_array().unwrap().len(), 1);
}
