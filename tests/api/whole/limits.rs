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
    let mut seen = Vec::new();
    for _ in 0..20 {
        let path = "/v1/presence/enforcers";
        let answer = contract
            .call(&everyone.admin, Method::GET, path, None)
            .await;
        seen.push(answer.status);
    }
    assert!(seen.contains(&429), "{seen:?}");
    let mut full = 0;
    for _ in 0..200 {
        let sent = submission(&request_id(), sealed());
        let call = contract.call(
            &everyone.enforcer,
            Method::POST,
            "/v1/artifacts",
            Some(&sent),
        );
        if call.await.status == 429 {
            full += 1;
            break;
        }
    }
    assert_eq!(full, 1, "the inbox is full, or the caller too fast");
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
