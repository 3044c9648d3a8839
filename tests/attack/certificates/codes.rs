//! Codes that bind certificates: sent twice at once, and guessed.

use futures_util::future::join_all;
use serde_json::json;

use super::{CERTIFICATES, Site};
use crate::support::database::finish;
use crate::support::log::Log;
use crate::support::scrape::{scrape, whole};
use crate::support::tls::TlsClient;

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_that_overlaps_the_first_call_gets_the_same_answer() {
    let site = Site::start().await;
    let (administration, database) = (&site.cluster.administration, &site.cluster.database);
    let (id, code) = site.pending(&site.cluster.tenant).await;
    let (code, thumbprint) = (
        code["code"].as_str().unwrap(),
        site.clients.client().thumbprint(),
    );
    // The first has locked the credential and not committed yet, when the second comes.
    let mut held = database.holding_writes("audit_events").await;
    let calls = join_all((0..2).map(|_| administration.bind_certificate(code, &thumbprint)));
    let (outcomes, ()) = tokio::join!(calls, async {
        database.blocked(2).await;
        finish(&mut held, "rollback").await;
    });
    for outcome in outcomes {
        assert_eq!(outcome.unwrap().credential_id.as_str(), id);
    }
    let bound = "select count(*) from audit_events where action = 'credential.bound'";
    assert_eq!(database.number(bound).await, 1);
}

// On one thread, so that what the node logs is what this thread's subscriber gets.
#[tokio::test]
async fn guessing_codes_is_counted_and_logged_without_the_code() {
    let log = Log::keep("info");
    let site = Site::start().await;
    let bot = site.clients.client();
    let (id, _) = site.pending(&site.cluster.tenant).await;
    let guess = format!("csc_{id}_{}", "g".repeat(43));
    let refused = site.bind(&bot, &json!({ "code": guess })).await;
    refused.refused(401, "UNAUTHENTICATED");
    let nobody = TlsClient::trusting(&site.servers);
    let body = json!({ "code": guess });
    let refused = nobody.post(site.url(), CERTIFICATES, &body).await;
    refused.unwrap().refused(401, "UNAUTHENTICATED");
    let read = scrape(&site.cluster.nodes[0].metrics).await;
    for (reason, count) in [("code", 1), ("missing", 1)] {
        let name = "countersign_authentication_failures_total";
        assert_eq!(
            whole(read.value(name, &[("reason", reason)])),
            count,
            "{reason}"
        );
    }
    let logged = log.text();
    let lines: Vec<_> = logged
        .lines()
        .filter(|line| line.contains("authentication failed"))
        .collect();
    assert_eq!(lines.len(), 1, "{logged}");
    assert!(
        lines[0].contains("code") && lines[0].contains("127.0.0.1"),
        "{logged}"
    );
    assert!(!logged.contains("ggg"), "{logged}");
}
