//! Whom a submission reaches; its routing is read once and kept nowhere.

use serde_json::{Value, json};

use super::EXCHANGES;
use crate::pairing::pair;
use crate::support::{Cluster, compact, envelope, request_id, sealed};

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_goes_to_whom_it_names_first_and_its_routing_is_kept_nowhere() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let submit = async |recipient: Option<&str>, metadata: Value| {
        let request = request_id();
        let mut body = sealed();
        body["metadata"] = metadata;
        let sender = json!({ "enforcerId": "build-bot" });
        let mut message = envelope("artifact.submit", &request, sender, body);
        if let Some(approver) = recipient {
            message["recipient"] = json!({ "approverId": approver });
        }
        (
            request,
            enforcer.client.post("/v1/artifacts", &message).await,
        )
    };

    let routing =
        json!({ "routingToken": "tok-1234", "approverId": "bob", "tenantId": "ten-5678" });
    let (first, answer) = submit(Some("alice"), routing.clone()).await;
    answer.expect(202);
    assert_eq!(alice.inbox_ids().await, [first.as_str()]);
    assert!(
        bob.inbox_ids().await.is_empty(),
        "the recipient comes first"
    );
    let item = alice.inbox("").await.body("/items/0/body");
    assert!(item.get("metadata").is_none(), "an empty rest: {item}");

    let (_, answer) = submit(None, routing).await;
    answer.refused_at(422, "NO_APPROVER", "/body/metadata/routingToken");
    let (_, answer) = submit(None, json!({ "routingToken": "", "approverId": "bob" })).await;
    answer.refused_at(422, "NO_APPROVER", "/body/metadata/routingToken");
    for nobody in [
        json!({}),
        json!({ "tenantId": { "any": "type" }, "title": "t" }),
    ] {
        let (_, answer) = submit(None, nobody).await;
        answer.refused_at(422, "NO_APPROVER", "/recipient/approverId");
    }

    let mixed = json!({ "approverId": "bob", "tenantId": "ten-5678", "title": "kept", "z": [1] });
    let (second, answer) = submit(None, mixed).await;
    answer.expect(202);
    assert_eq!(bob.inbox_ids().await, [second.as_str()]);
    assert_eq!(
        bob.inbox("").await.body("/items/0/body/metadata"),
        json!({ "title": "kept", "z": [1] })
    );

    // A name may be spelled with escapes; it is the same name.
    let text = enforcer
        .submission("escaped", "alice", sealed())
        .to_string()
        .replace(
            "\"ciphertext\"",
            r#""metadata":{"routing\u0054oken":"tok-1234","k\u0065pt":1.0},"ciphertext""#,
        );
    let call = enforcer.client.call(reqwest::Method::POST, "/v1/artifacts");
    call.text(&text).send().await.expect(202);
    let page = alice.inbox("").await.expect(200).text;
    assert!(page.contains(r#""metadata":{"k\u0065pt":1.0}"#), "{page}");

    assert_eq!(cluster.database.number(EXCHANGES).await, 3);
    let everything = cluster.database.everything().await;
    assert!(everything.contains("kept"), "the search sees payloads");
    for secret in ["tok-1234", "ten-5678", "routingToken", "tenantId"] {
        assert!(!everything.contains(secret), "{secret} is stored");
    }
    let payloads = "select string_agg(t::text, chr(10)) from exchange_payloads t";
    let payloads = cluster.database.text(payloads).await;
    assert!(!payloads.contains("approverId") && !payloads.contains("bob"));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_approvers_are_named_and_the_first_decision_is_theirs() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let names = ["alice", "bob", "carol"];
    let mut people = Vec::new();
    for name in names {
        people.push(cluster.approver(name).await);
    }
    // Whoever is paired is not asked if somebody else is named.
    pair(&enforcer, &people[2]).await;
    let submit = async |metadata: Value| {
        let request = request_id();
        let mut body = sealed();
        body["metadata"] = metadata;
        let sender = json!({ "enforcerId": "build-bot" });
        let message = envelope("artifact.submit", &request, sender, body);
        let answer = enforcer.client.post("/v1/artifacts", &message).await;
        (request, answer)
    };
    let inboxes = async || {
        let mut all = Vec::new();
        for person in &people {
            all.push(person.inbox_ids().await);
        }
        all
    };

    let (first, answer) = submit(json!({ "approverIds": ["bob", "alice"], "title": "kept" })).await;
    answer.expect(202);
    let one = vec![first.clone()];
    assert_eq!(inboxes().await, [one.clone(), one.clone(), Vec::new()]);
    let kept = people[0].inbox("").await.body("/items/0/body/metadata");
    assert_eq!(kept, json!({ "title": "kept" }));
    assert_eq!(
        cluster.database.number(EXCHANGES).await,
        1,
        "one exchange for both"
    );
    let payloads = "select string_agg(t::text, chr(10)) from exchange_payloads t";
    let payloads = cluster.database.text(payloads).await;
    assert!(!payloads.contains("approverIds"), "{payloads}");
    people[1]
        .decide(&first, compact("approve"))
        .await
        .expect(200);
    let late = people[0].decide(&first, compact("reject")).await;
    late.refused(409, "ALREADY_DECIDED");
    assert_eq!(inboxes().await, [const { Vec::<String>::new() }; 3]);

    // What is named before it counts alone.
    let (second, answer) = submit(json!({ "approverId": "carol", "approverIds": ["bob"] })).await;
    answer.expect(202);
    assert_eq!(inboxes().await, [vec![], vec![], vec![second]]);
    let (_, answer) = submit(json!({ "routingToken": "t", "approverIds": ["bob"] })).await;
    answer.refused_at(422, "NO_APPROVER", "/body/metadata/routingToken");
    for wrong in [
        json!([]),
        json!("bob"),
        json!(["bob", "bob"]),
        json!(["bob", 1]),
        json!([""]),
        json!({ "0": "bob" }),
        Value::Null,
    ] {
        let (_, answer) = submit(json!({ "approverIds": wrong })).await;
        answer.refused_at(400, "VALIDATION", "/body/metadata/approverIds");
    }
    let many = |count| {
        (0..count)
            .map(|n| format!("approver-{n}"))
            .collect::<Vec<_>>()
    };
    let (_, answer) = submit(json!({ "approverIds": many(201) })).await;
    let refused = answer.refused_at(422, "TOO_LARGE", "/body/metadata/approverIds");
    assert_eq!(refused.detail("limit"), 200);
    let (_, answer) = submit(json!({ "approverIds": many(200) })).await;
    answer.expect(202);
    let status = enforcer.client.get("/v1/status").await.expect(200).json();
    let known = status["routing"].as_array().unwrap();
    assert!(known.contains(&json!("approverIds")), "{status}");
}
