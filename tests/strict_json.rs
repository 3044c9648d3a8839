//! JSON that two parsers could read differently is refused on every route that takes a body, and
//! leaves nothing behind.

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Cluster, HASH, compact, envelope, now, public_key, request_id, sealed, signing_key,
};

/// A route that takes a body.
struct Route<'a> {
    method: Method,
    path: String,
    client: &'a Client,
    /// A body that it would take.
    body: Value,
    /// Whether it takes none, too.
    optional: bool,
}

/// Texts that must be refused as `code`, made from a good one.
fn bad_texts(good: &str) -> Vec<(&'static str, Vec<u8>)> {
    let member = |text: &str| format!("{},\"x\":{text}}}", good.strip_suffix('}').unwrap());
    let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
    let mut bad: Vec<(&str, Vec<u8>)> = [
        ("CANONICALIZATION", member("1,\"x\":1")),
        ("CANONICALIZATION", member("1,\"\\u0078\":2")),
        ("CANONICALIZATION", member("{\"y\":{\"z\":1,\"z\":1}}")),
        ("CANONICALIZATION", member("\"\\ud800\"")),
        ("CANONICALIZATION", member("\"\\udc00\\ud800\"")),
        ("CANONICALIZATION", member("{\"\\ud83d\":1}")),
        ("CANONICALIZATION", member("9007199254740992")),
        ("CANONICALIZATION", member("-9007199254740992")),
        ("CANONICALIZATION", member("[1e400]")),
        ("CANONICALIZATION", member("-1e309")),
        ("CANONICALIZATION", member("\"\\u0000\"")),
        ("CANONICALIZATION", member("{\"a\\u0000b\":1}")),
        ("MALFORMED_JSON", member(&deep)),
        ("MALFORMED_JSON", member("\"\u{0}\"")),
        ("MALFORMED_JSON", member("\"line\nfeed\"")),
        ("MALFORMED_JSON", member("01")),
        ("MALFORMED_JSON", member("NaN")),
        ("MALFORMED_JSON", member("1,")),
        ("MALFORMED_JSON", format!("{good}x")),
        ("MALFORMED_JSON", format!("{good}{good}")),
        ("MALFORMED_JSON", format!("{good}\u{0}")),
        ("MALFORMED_JSON", format!("\u{feff}{good}")),
        ("MALFORMED_JSON", good[..good.len() - 1].to_owned()),
        ("MALFORMED_JSON", " ".to_owned()),
    ]
    .map(|(code, text)| (code, text.into_bytes()))
    .to_vec();
    let mut latin = good.as_bytes().to_vec();
    latin.splice(1..1, *b"\"\xe4\":1,");
    bad.push(("MALFORMED_JSON", latin));
    bad
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_json_is_refused_on_every_route_and_leaves_nothing_behind() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let (admin, operator) = (cluster.admin().await, cluster.operator());
    let nobody = cluster.client(None);
    let compat = cluster.compat_key(&cluster.tenant, RoleName::Enforcer, Some("build-bot"));
    let compat = cluster.client(Some(&compat.await));
    let pending = request_id();
    let submission = enforcer.submission(&pending, "alice", sealed());
    let sent = enforcer.client.post("/v1/artifacts", &submission).await;
    sent.expect(202);
    let item = approver.inbox("").await.body("/items/0/msgId");
    let as_approver = json!({ "approverId": "alice" });
    let refresh = envelope("refresh.request", &pending, as_approver.clone(), json!({}));
    let key = json!({ "publicKey": public_key(&signing_key(1)) });
    let prompt = json!({
        "requestId": request_id(), "artifactType": "prompt.send", "createdAt": now(), "target": "tool",
        "ciphertext": { "alg": "a", "data": "d" }, "promptHashAlg": "SHA-256", "promptHash": HASH,
        "metadata": { "enforcerId": "build-bot" },
    });
    let ack = json!({ "msgId": item, "status": "received", "ackAt": now() });
    let post = |path: &str, client, body, optional| Route {
        method: Method::POST,
        path: path.replace("{}", &pending),
        client,
        body,
        optional,
    };
    let withdrawal = envelope(
        "exchange.withdrawn",
        &pending,
        json!({ "enforcerId": "build-bot" }),
        json!({}),
    );
    let pairing = json!({ "enforcerId": "build-bot" });
    let begun = enforcer.client.post("/v1/pairing/initiate", &pairing).await;
    let routes = [
        post(
            "/v1/artifacts",
            &enforcer.client,
            enforcer.submission(&request_id(), "alice", sealed()),
            false,
        ),
        post(
            "/v1/decisions",
            &approver.client,
            approver.decision(&pending, compact("approve")),
            false,
        ),
        post(
            "/v1/acks",
            &approver.client,
            envelope("ack.submit", &pending, as_approver, ack),
            false,
        ),
        Route {
            method: Method::PUT,
            path: format!("/v1/exchanges/{pending}/ciphertext"),
            client: &enforcer.client,
            body: submission,
            optional: false,
        },
        Route {
            method: Method::PUT,
            path: "/v1/approvers/alice/invitations/none".to_owned(),
            client: &approver.client,
            body: json!({ "request": "r", "proof": "p" }),
            optional: false,
        },
        post(
            "/v1/exchanges/{}/withdraw",
            &enforcer.client,
            withdrawal,
            true,
        ),
        post(
            "/v1/exchanges/{}/refresh",
            &approver.client,
            refresh.clone(),
            false,
        ),
        post("/v1/requests/{}/refresh", &approver.client, refresh, false),
        post(
            "/v1/artifact",
            &enforcer.client,
            enforcer.submission(&request_id(), "alice", sealed()),
            false,
        ),
        post(
            "/v1/decision",
            &approver.client,
            approver.decision(&pending, compact("approve")),
            false,
        ),
        post("/v1/prompt", &approver.client, prompt, false),
        post(
            "/platform/v1/tenants",
            &operator,
            json!({ "name": "another" }),
            false,
        ),
        post(
            "/platform/v1/credentials",
            &admin,
            json!({ "role": "admin" }),
            false,
        ),
        post(
            "/platform/v1/token-revocations",
            &admin,
            json!({ "tokenId": "t" }),
            false,
        ),
        Route {
            method: Method::PUT,
            path: "/platform/v1/approvers/alice/keys/k".to_owned(),
            client: &admin,
            body: key,
            optional: false,
        },
        post(
            "/platform/v1/exchanges/{}/cancel",
            &admin,
            json!({ "reason": "why" }),
            true,
        ),
        post(
            "/v1/pairing/initiate",
            &enforcer.client,
            pairing.clone(),
            false,
        ),
        post(
            "/v1/pairing/complete",
            &approver.client,
            json!({ "nonce": begun.json()["nonce"], "approverId": "alice" }),
            false,
        ),
        post(
            "/v1/pairing/revoke",
            &approver.client,
            json!({ "routingToken": "t" }),
            false,
        ),
        post(
            "/v1/session/event",
            &enforcer.client,
            json!({ "sessionId": "s", "eventType": "session.end", "endedAt": now(), "reason": "timeout" }),
            false,
        ),
        post(
            "/platform/v1/invitations",
            &admin,
            json!({ "role": "approver", "boundId": "bob" }),
            false,
        ),
        post(
            "/v1/approvers/alice/notifications",
            &admin,
            json!({ "kind": "webhook", "url": "https://hooks.example.com/" }),
            false,
        ),
        post(
            "/v1/presence/heartbeat",
            &compat,
            json!({ "enforcerId": "build-bot" }),
            false,
        ),
        post(
            "/v1/pairing/claim",
            &compat,
            json!({ "pairingCode": "0000-0000", "enforcerId": "build-bot" }),
            false,
        ),
        post("/v1/join", &nobody, json!({ "code": "none" }), false),
        post(
            "/v1/teams/AAECAwQFBgcICQoLDA0ODw/invitations",
            &approver.client,
            json!({ "inviteId": "AAECAwQFBgcICQoLDA0ODw", "approverId": "bob" }),
            false,
        ),
        post(
            "/v1/waits?timeout=1",
            &approver.client,
            json!({ "requestIds": [pending] }),
            false,
        ),
    ];
    let handlers = include_str!("../src/http/mod.rs");
    let taking = handlers.matches("post \"/").count() + handlers.matches("put \"/").count();
    // A code is issued without a body, and a certificate is bound only where one was presented. A
    // statement of a device or a team is read by another reader, whose refusals have tests of their own.
    let elsewhere = [
        "/code\" => certificate",
        "/certificates\" => certificate",
        "/devices\" => device::add",
        "/introductions\" => introduction::introduce",
        "/invitations\" => device_invitation::create",
        "/teams\" => team::create",
        "/states\" => team::publish",
        "/consents\" => team::consent;",
        "/introductions\" => team::introduce",
        // These have no body.
        "/test\" => notification::test",
        "/pre-generate\" => compat::pairing::offer",
    ];
    for other in elsewhere {
        assert_eq!(handlers.matches(other).count(), 1, "{other}");
    }
    let taking = taking - elsewhere.len();
    assert_eq!(routes.len(), taking, "a route without an entry here");

    let before = cluster.database.counts().await;
    for route in &routes {
        let send = async |text: Vec<u8>| {
            let call = route.client.call(route.method.clone(), &route.path);
            let call = call.header("content-type", "application/json");
            call.bytes(text).send().await
        };
        for (code, text) in bad_texts(&route.body.to_string()) {
            let answer = send(text.clone()).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (400, code),
                "{} {:?} {answer:?}",
                route.path,
                String::from_utf8_lossy(&text)
            );
            assert!(answer.detail("pointer").is_string(), "{answer:?}");
        }
        if !route.optional {
            send(Vec::new()).await.refused(400, "MALFORMED_JSON");
        }
        // As deep and as large as is allowed, it gets as far as being an unknown member.
        let deep = format!("{}9007199254740991{}", "[".repeat(63), "]".repeat(63));
        let good = route.body.to_string();
        let text = format!("{},\"x\":{deep}}}", good.strip_suffix('}').unwrap());
        let answer = send(text.into_bytes()).await;
        answer.refused_at(400, "VALIDATION", "/x");
    }
    assert_eq!(cluster.database.counts().await, before);
    assert_eq!(enforcer.state(&pending).await, "pendingApproval");
    let unacked = "select count(*) from inbox_items where acked_at is null";
    assert_eq!(cluster.database.number(unacked).await, 1);

    // Only the texts were at fault: what they were made from is taken, in an order that lets each
    // have its turn.
    for (path, status) in [
        ("/v1/artifacts", 202),
        ("/v1/acks", 200),
        ("/v1/exchanges/{}/refresh", 202),
        ("/v1/artifact", 202),
        ("/v1/prompt", 202),
        ("/v1/session/event", 202),
        ("/v1/pairing/initiate", 200),
        ("/platform/v1/tenants", 201),
        ("/platform/v1/credentials", 201),
        ("/platform/v1/invitations", 201),
        ("/platform/v1/approvers/alice/keys/k", 200),
        ("/platform/v1/token-revocations", 201),
        ("/v1/exchanges/{}/ciphertext", 204),
        ("/v1/exchanges/{}/withdraw", 200),
    ] {
        let path = path.replace("{}", &pending);
        let route: &Route<'_> = routes.iter().find(|route| route.path == path).unwrap();
        let call = route.client.call(route.method.clone(), &route.path);
        call.json(&route.body).send().await.expect(status);
    }
}
