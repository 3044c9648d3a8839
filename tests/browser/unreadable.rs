//! Requests that the gateway has written, altered or swapped: shown as what they are, and nothing
//! approves them.

use countersign::client::random;
use countersign::e2e::PlainArtifact;
use serde_json::{Value, json};

use super::PATIENCE;
use super::forger::Forger;
use super::page::Page;
use super::stage::BrowserStage;
use crate::support::{in_time, now, open, request_id, until};

/// Opened afresh, since what was open before stays open.
const NOWHERE: &str = "about:blank";

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_open_or_does_not_agree_cannot_be_approved() {
    let (stage, bot, page) = BrowserStage::paired().await;
    let database = &stage.cluster.database;
    let hello = bot.begin(&["run", "--", "echo", "hello"]);
    page.open_request("echo hello").await;
    page.approve().await;
    hello.end().await.expect(0);
    let old = database
        .text("select body::text from exchange_payloads where part = 'artifact'")
        .await;

    let payload = |value: &str| {
        format!("update exchange_payloads set body = ({value})::json where part = 'artifact' and")
    };
    let swapped =
        format!("jsonb_set(body::jsonb, '{{ciphertext}}', '{old}'::jsonb -> 'ciphertext')");
    let hash = format!(
        "regexp_replace(body::text, '[0-9a-f]{{64}}', '{}')",
        "0".repeat(64)
    );
    let kind = "replace(body::text, 'command.review', 'plan.review')";
    let content = "replace(body::text, '\"data\":\"', '\"data\":\"AAAA')";
    let nobody = "replace(body::text, '\"deviceId\":\"', '\"deviceId\":\"A')";
    for (edit, problem) in [
        (
            payload(&swapped),
            "It doesn’t open: it isn’t from the paired agent",
        ),
        (
            payload(&hash),
            "It doesn’t open: it isn’t from the paired agent",
        ),
        (
            payload(kind),
            "It doesn’t open: it isn’t from the paired agent",
        ),
        (
            payload(content),
            "Its content doesn’t open: it was altered on the way.",
        ),
        (payload(nobody), "It isn’t encrypted for this device."),
        (
            "update exchanges set enforcer_id = 'other' where".to_owned(),
            "isn’t paired with the agent",
        ),
    ] {
        page.open(NOWHERE).await;
        let asking = bot.begin(&["run", "--", "touch", "never"]);
        let waiting = "select count(*) from exchanges where state = 'pendingApproval'";
        until("it waits", PATIENCE, async || {
            database.number(waiting).await == 1
        })
        .await;
        let edit = format!(
            "{edit} request_id in (select request_id from exchanges where state = 'pendingApproval')"
        );
        database.run(&edit).await;
        cannot_be_approved(&page, problem).await;
        assert_eq!(database.number(waiting).await, 1, "{problem}");
        database
            .run("update exchanges set enforcer_id = 'bot'")
            .await;
        asking.interrupt();
        // It may have polled while its exchange was another enforcer's: then it was refused before.
        let ran = asking.end().await;
        let code = if edit.contains("enforcer_id") && ran.code == 77 {
            77
        } else {
            130
        };
        ran.expect(code);
    }

    // One that the gateway could have written.
    page.open(NOWHERE).await;
    let plain = stage.cluster.enforcer("bot").await;
    let id = request_id();
    plain.submit(&id, "alice", open(&id)).await.expect(202);
    cannot_be_approved(
        &page,
        "It isn’t encrypted, so the gateway could have written or changed it.",
    )
    .await;
    page.reject_unread().await;
    page.close().await;
}

async fn cannot_be_approved(page: &Page, problem: &str) {
    page.open("#/inbox").await;
    page.choose("This request can’t be approved").await;
    page.sees(problem).await;
    page.until(
        "it can be rejected",
        "return document.querySelector('.decision:not(.outcome, [inert])') !== null",
    )
    .await;
    for name in ["Approve", "Approve for longer…"] {
        assert!(!page.offers(name).await, "{problem}: {name}");
    }
    page.key("a").await;
    let text = page.text().await;
    assert!(
        !text.contains("Approved") && !text.contains("Sending"),
        "{text}"
    );
    assert!(page.offers("Reject").await, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_enforcer_should_never_encrypt_is_refused_in_words() {
    let (stage, _bot, page) = BrowserStage::paired().await;
    let forger = Forger::of(&stage).await;
    let whole = |said: &Value| {
        let artifact = json!({
            "requestId": said["requestId"], "artifactType": "command.review", "repoRef": "repo:acme/widgets", "createdAt": now(),
            "expiresAt": said["expiresAt"], "payload": { "kind": "command", "argv": ["true"] }, "artifactHashAlg": "SHA-256",
        });
        PlainArtifact::complete(&artifact.to_string(), &mut random).unwrap()
    };
    let json = "isn’t strict JSON";
    for (content, problem) in [
        (b"{\"a\":\"\xff\xfe\"}".to_vec(), json),
        (b"\xed\xa0\x80".to_vec(), json),
        (vec![b'['; 200_000], json),
        ([vec![b'['; 65], vec![b']'; 65]].concat(), json),
        (b"{\"a\":1,\"a\":2}".to_vec(), json),
        (b"{}".to_vec(), "is damaged"),
        (Vec::new(), json),
    ] {
        let said = Forger::said();
        forger.submit(&said, &content).await;
        cannot_be_approved(&page, problem).await;
        page.reject_unread().await;
    }
    let said = Forger::said();
    forger.submit(&said, whole(&said).text().as_bytes()).await;
    cannot_be_approved(&page, "Its content doesn’t match its hash.").await;
    page.reject_unread().await;
    for (member, value) in [
        ("artifactType", json!("plan.review")),
        ("requestId", json!(request_id())),
        ("expiresAt", json!(in_time(900))),
    ] {
        let mut said = Forger::said();
        let artifact = whole(&said);
        said["artifactHash"] = artifact.hash().to_string().into();
        said[member] = value;
        forger.submit(&said, artifact.text().as_bytes()).await;
        cannot_be_approved(
            &page,
            &format!("{member} in the encrypted content isn’t what the gateway says."),
        )
        .await;
        page.reject_unread().await;
    }
    // With everything right it opens, so that nothing above was refused for another reason.
    let mut said = Forger::said();
    let artifact = whole(&said);
    said["artifactHash"] = artifact.hash().to_string().into();
    forger.submit(&said, artifact.text().as_bytes()).await;
    page.open_request("true").await;
    page.approve().await;
    page.close().await;
}
