//! An attacker with a stolen credential leaves its name and its address; one that tries keys is
//! counted and logged, and the log has no secret.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::support::exchanges::{DAY, pending};
use crate::support::log::Log;
use crate::support::push::Socket;
use crate::support::scrape::{scrape, whole};
use crate::support::{Approver, Client, Cluster, compact, until};

/// The credential a key belongs to.
fn credential(client: &Client) -> &str {
    client.key().split('_').nth(1).expect("an id")
}

/// A column of the history of an exchange.
async fn shown(cluster: &Cluster, request: &str, columns: &str) -> String {
    let sql = format!(
        "select concat_ws(' ', {columns}) from exchange_history where request_id = '{request}'"
    );
    cluster.database.text(&sql).await
}

/// Its transitions: to which state, with which credential, from where.
async fn events(cluster: &Cluster, request: &str) -> String {
    let sql = format!(
        "select string_agg(concat_ws(' ', to_state, coalesce(principal, '-'), coalesce(address, '-')), ', ' order by at)
           from exchange_events where request_id = '{request}' and tenant_id = '{}'",
        cluster.tenant
    );
    cluster.database.text(&sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_uses_a_second_credential_of_an_approver_is_told_apart() {
    let cluster = Cluster::start(2).await;
    let bot = cluster.enforcer("build-bot").await;
    let (hers, stolen) = (
        cluster.approver("alice").await,
        cluster.approver("alice").await,
    );
    let its = credential(&bot.client);
    assert_ne!(credential(&hers.client), credential(&stolen.client));
    let mut socket = {
        let url = &cluster.nodes[1].url;
        let socket = Socket::connect(url, "approver", "alice", stolen.client.key()).await;
        socket.unwrap()
    };
    for (approver, over_socket) in [(&hers, false), (&stolen, false), (&stolen, true)] {
        let request = pending(&bot, DAY).await;
        let waiting =
            "select concat_ws(' ', submitted_principal, submitted_address) from pending_inbox";
        assert_eq!(
            cluster.database.text(waiting).await,
            format!("{its} 127.0.0.1")
        );
        if over_socket {
            let frame = Approver::decision(approver, &request, compact("approve"));
            socket.send(&frame).await;
            socket.expect_type("decision.accepted").await;
        } else {
            let decided = approver.decide(&request, compact("approve")).await;
            decided.expect(200);
        }
        let message = bot.wait(&request, 5).await.expect(200).json()["msgId"].clone();
        let acked = bot.ack(&request, message.as_str().unwrap()).await;
        acked.expect(200);
        let with = credential(&approver.client);
        assert_eq!(
            events(&cluster, &request).await,
            format!(
                "pendingApproval {its} 127.0.0.1, decided {with} 127.0.0.1, delivered {its} 127.0.0.1"
            )
        );
        let columns = "submitted_principal, submitted_address, decided_principal, decided_address, ended_principal, \
                       ended_address";
        assert_eq!(
            shown(&cluster, &request, columns).await,
            format!("{its} 127.0.0.1 {with} 127.0.0.1 {its} 127.0.0.1")
        );
        let latency = format!(
            "select concat_ws(' ', decided_principal, decided_address) from decision_latency where request_id = '{request}'"
        );
        assert_eq!(
            cluster.database.text(&latency).await,
            format!("{with} 127.0.0.1")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_ends_an_exchange_is_recorded_and_the_gateway_has_no_credential() {
    let cluster = Cluster::start(2).await;
    let (bot, second) = (
        cluster.enforcer("build-bot").await,
        cluster.enforcer("build-bot").await,
    );
    let admin = cluster.admin().await;
    let (its, other, chief) = (
        credential(&bot.client),
        credential(&second.client),
        credential(&admin),
    );
    let columns = "state, ended_principal, ended_address";
    let request = pending(&bot, DAY).await;
    second.withdraw(&request).await.expect(200);
    assert_eq!(
        events(&cluster, &request).await,
        format!("pendingApproval {its} 127.0.0.1, withdrawn {other} 127.0.0.1")
    );
    assert_eq!(
        shown(&cluster, &request, columns).await,
        format!("withdrawn {other} 127.0.0.1")
    );
    let request = pending(&bot, DAY).await;
    let path = format!("/platform/v1/exchanges/{request}/cancel");
    admin.post(&path, &json!({})).await.expect(200);
    assert_eq!(
        events(&cluster, &request).await,
        format!("pendingApproval {its} 127.0.0.1, cancelled {chief} 127.0.0.1")
    );
    let request = pending(&bot, DAY).await;
    cluster.pass(DAY + Duration::from_secs(1));
    let expired = format!("pendingApproval {its} 127.0.0.1, expired - -");
    until(
        "its expiry is written",
        Duration::from_secs(5),
        async || events(&cluster, &request).await == expired,
    )
    .await;
    assert_eq!(shown(&cluster, &request, columns).await, "expired");
}

/// How many authentications have failed on the node, by reason.
async fn failures(cluster: &Cluster) -> Vec<(&'static str, u64)> {
    let read = scrape(&cluster.nodes[0].metrics).await;
    let reasons = [
        "missing",
        "malformed",
        "unknown",
        "secret",
        "revoked",
        "expired",
        "token",
    ];
    reasons
        .map(|reason| {
            let name = "countersign_authentication_failures_total";
            (reason, whole(read.value(name, &[("reason", reason)])))
        })
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect()
}

// On one thread, so that what the node logs is what this thread's subscriber gets.
#[tokio::test]
async fn guessed_keys_are_counted_and_logged_without_the_secret() {
    let log = Log::keep("info");
    let cluster = Cluster::with(1, |config| config.auth.basic = true).await;
    let alice = cluster.approver("alice").await;
    let (id, key) = (credential(&alice.client).to_owned(), alice.client.key());
    let gone = cluster.approver("bob").await;
    let (ended, path) = (
        credential(&gone.client).to_owned(),
        format!("/platform/v1/credentials/{}", credential(&gone.client)),
    );
    cluster.admin().await.delete(&path).await.expect(204);
    let wrong = format!("csk_{id}_{}", "w".repeat(43));
    let unknown = format!("csk_nobody_{}", "u".repeat(43));
    let tries = [
        format!("Bearer {wrong}"),
        format!("Bearer {unknown}"),
        "Bearer csk_a-typed-secret".to_owned(),
        "Bearer some.opaque.token".to_owned(),
        format!("Bearer {}", gone.client.key()),
        "Basic not-base64!".to_owned(),
    ];
    let nobody = cluster.client(None);
    let call = |value: &str| {
        let call = nobody.call(Method::GET, "/v1/approvers/alice/inbox");
        call.header("authorization", value)
    };
    // First until the node knows that it was revoked.
    until("it is revoked", Duration::from_secs(10), async || {
        call(&tries[4]).send().await.status == 401
    })
    .await;
    let (before, logged) = (failures(&cluster).await, log.text().len());
    assert_eq!(before, [("revoked", 1)]);
    for value in &tries {
        call(value).send().await.refused(401, "UNAUTHENTICATED");
    }
    nobody.get("/v1/approvers/alice/inbox").await.expect(401);
    alice.inbox("").await.expect(200);
    let expected = [
        ("missing", 1),
        ("malformed", 2),
        ("unknown", 1),
        ("secret", 1),
        ("revoked", 2),
        ("token", 1),
    ];
    assert_eq!(failures(&cluster).await, expected);

    let text = log.text()[logged..].to_owned();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.contains("authentication failed"))
        .collect();
    assert_eq!(lines.len(), 6, "{text}");
    for (line, (reason, named)) in lines.iter().zip([
        ("secret", Some(&id)),
        ("unknown", None),
        ("malformed", None),
        ("token", None),
        ("revoked", Some(&ended)),
        ("malformed", None),
    ]) {
        assert!(line.contains(" INFO "), "{line}");
        assert!(line.contains(&format!("reason=\"{reason}\"")), "{line}");
        assert!(line.contains("address=127.0.0.1"), "{line}");
        match named {
            Some(id) => assert!(line.contains(&format!("credential={id}")), "{line}"),
            None => assert!(!line.contains("credential="), "{line}"),
        }
    }
    let secret = |key: &str| key.splitn(3, '_').nth(2).unwrap().to_owned();
    for secret in [
        secret(key),
        secret(gone.client.key()),
        secret(&wrong),
        secret(&unknown),
        "nobody".to_owned(),
        "typed".to_owned(),
        "opaque".to_owned(),
    ] {
        assert!(!text.contains(&secret), "{secret}: {text}");
    }
}

// On one thread, as above.
#[tokio::test]
async fn a_flood_of_wrong_keys_does_not_flood_the_log() {
    let log = Log::keep("info");
    let cluster = Cluster::start(1).await;
    let alice = cluster.approver("alice").await;
    let wrong = format!("csk_{}_{}", credential(&alice.client), "w".repeat(43));
    let thief = cluster.client(Some(&wrong));
    let tried = async |count: usize| {
        for _ in 0..count {
            let refused = thief.get("/v1/approvers/alice/inbox").await;
            refused.expect(401);
        }
    };
    let began = tokio::time::Instant::now();
    tried(200).await;
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    let lines = |text: &str| text.matches("authentication failed").count();
    let written = lines(&log.text());
    let most = 20 + 5 * seconds;
    assert!((20..=most).contains(&written), "{written} of {most}");
    assert!(written < 200, "{written}");
    assert_eq!(failures(&cluster).await, [("secret", 200)]);
    // Later the log says how many it has left out.
    cluster.pass(Duration::from_secs(60));
    tried(1).await;
    let text = log.text();
    assert_eq!(lines(&text), written + 1, "{text}");
    let left_out: usize = text
        .split("unlogged=")
        .skip(1)
        .map(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<usize>().unwrap()
        })
        .sum();
    assert_eq!(left_out, 200 - written, "{text}");
}
