//! Refusals that say when to come back.

use reqwest::Method;
use serde_json::json;

use super::{Everyone, submission};
use crate::support::{Cluster, Contract, request_id, sealed};

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_a_database_that_is_away() {
    let cluster = Cluster::with(1, |config| {
        config.rates.enabled = true;
        config.rates.reads = 1;
        config.rates.reads_burst = 2;
        config.limits.pending_per_approver = 1;
        config.limits.body_bytes = 1_000;
    })
    .await;
    let everyone = Everyone::of(&cluster).await;
    let contract = Contract::of(&everyone.nobody).await;
    let mut fast = None;
    for _ in 0..20 {
        let path = "/v1/presence/enforcers";
        let answer = contract
            .call(&everyone.admin, Method::GET, path, None)
            .await;
        fast = fast.or((answer.status == 429).then_some(answer));
    }
    let fast = fast.expect("too fast").refused(429, "RATE_LIMITED");
    assert_eq!(fast.json()["message"], "too many reads at once");
    let submit = async || {
        let sent = submission(&request_id(), sealed());
        let (path, sent) = ("/v1/artifacts", Some(&sent));
        contract
            .call(&everyone.enforcer, Method::POST, path, sent)
            .await
    };
    submit().await.expect(202);
    let full = submit().await.refused(429, "RATE_LIMITED");
    assert_eq!(full.body("/message"), "the approver's inbox is full");
    let long = json!({ "name": "x".repeat(2_000) });
    let path = "/platform/v1/tenants";
    let call = contract.call(&everyone.operator, Method::POST, path, Some(&long));
    call.await.refused(413, "TOO_LARGE");
    let call = everyone
        .operator
        .call(Method::POST, path)
        .header("content-type", "text/plain");
    let answer = call
        .bytes(b"{}".to_vec())
        .send()
        .await
        .refused(415, "UNSUPPORTED_MEDIA_TYPE");
    contract.check(&Method::POST, path, &answer).unwrap();

    let (cluster, proxy) = Cluster::behind_proxy().await;
    let admin = cluster.admin().await;
    let contract = Contract::of(&admin).await;
    admin.get("/platform/v1/audit").await.expect(200);
    proxy.refuse(true);
    proxy.cut();
    for path in ["/platform/v1/audit", "/v1/exchanges/r", "/readyz"] {
        let answer = contract.call(&admin, Method::GET, path, None).await;
        assert_eq!(answer.status, 503, "{answer:?}");
    }
}
