//! Invented tokens: those who send them wait for each other, and nobody else waits for them.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign::config::{Config, TlsMode};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::log::Log;
use crate::support::{Answer, Client, Cluster, crowd, until};
use crate::tokens::issuer::active;
use crate::tokens::provider::{Provider, Says};
use crate::tokens::{INBOX, by_introspection};

/// Behind a proxy, which says where calls come from.
fn proxied(config: &mut Config, provider: &Provider) {
    by_introspection(config, provider);
    config.tls.mode = TlsMode::Upstream;
    config.tls.proxies = vec![IpAddr::from([127, 0, 0, 1]).into()];
}

async fn call(client: &Client, address: &str, token: &str) -> Answer {
    client
        .call(Method::GET, INBOX)
        .header("x-forwarded-proto", "https")
        .header("x-forwarded-for", address)
        .header("authorization", &format!("Bearer {token}"))
        .send()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_addresses_invent_tokens_and_fresh_ones_are_taken() {
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| proxied(config, &provider)).await;
    let good = active(cluster.tenant.as_str(), "approver", "alice");
    let client = cluster.client(None);
    let number = AtomicUsize::new(0);
    let fresh = async |count: usize| {
        let (mut statuses, mut slowest) = (Vec::new(), Duration::ZERO);
        for _ in 0..count {
            let token = format!("fresh-{}", number.fetch_add(1, Ordering::Relaxed));
            provider.know(&token, Says::Json(good.clone()));
            let begun = Instant::now();
            statuses.push(call(&client, "192.0.2.99", &token).await.status);
            slowest = slowest.max(begun.elapsed());
            sleep(Duration::from_millis(100)).await;
        }
        (statuses, slowest)
    };
    let (_, without) = fresh(7).await;
    // Each is asked about for a second: sixty-four at once are sixty-four a second, and the others
    // wait for longer than a call does.
    let turned_away = AtomicUsize::new(0);
    let crowd = crowd(8 * 40).await;
    let attack = join_all((0..crowd.size).map(async |flood| {
        let address = format!("198.51.100.{}", flood % 8);
        loop {
            let token = format!("invented-{}", number.fetch_add(1, Ordering::Relaxed));
            let late = Says::Late(Duration::from_secs(1), json!({ "active": false }));
            provider.know(&token, late);
            let status = call(&client, &address, &token).await.status;
            assert!([401, 503].contains(&status), "{status}");
            turned_away.fetch_add(usize::from(status == 503), Ordering::Relaxed);
        }
    }));
    let honest = async {
        until("the queue is full", Duration::from_secs(30), async || {
            turned_away.load(Ordering::Relaxed) > 50
        })
        .await;
        fresh(7).await
    };
    let (statuses, during) = tokio::select! {
        _ = attack => unreachable!("it goes on"),
        honest = honest => honest,
    };
    println!(
        "fresh tokens beside invented ones: {statuses:?}; the slowest in {during:?}, without them {without:?}"
    );
    assert_eq!(statuses, [200; 7]);
    // Four for each address, and a fresh one; and the provider may notice a little late that the
    // node has given up one. All 64 places were never taken.
    let most = provider.most_asking();
    assert!(most < 48, "{most} at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_whose_tokens_are_refused_is_not_asked_about_again_at_once() {
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| {
        proxied(config, &provider);
        config.rates.enabled = true;
        (
            config.rates.refused_tokens,
            config.rates.refused_tokens_burst,
        ) = (1, 5);
    })
    .await;
    let client = cluster.client(None);
    let good = active(cluster.tenant.as_str(), "approver", "alice");
    for token in ["known", "fresh", "other"] {
        provider.know(token, Says::Json(good.clone()));
    }
    let bad = "198.51.100.1";
    call(&client, bad, "known").await.expect(200);
    for number in 0..5 {
        let refused = call(&client, bad, &format!("invented-{number}")).await;
        refused.refused(401, "UNAUTHENTICATED");
    }
    let asked = provider.asked();
    let refused = call(&client, bad, "invented-5").await;
    let refused = refused.refused(429, "RATE_LIMITED");
    assert!(refused.header("ratelimit").unwrap().contains("tokens"));
    assert_eq!(provider.asked(), asked, "nobody was asked");
    // One that was refused before is refused the same way; one that is known is taken, and so are
    // fresh ones from elsewhere.
    let refused = call(&client, bad, "invented-0").await;
    refused.refused(401, "UNAUTHENTICATED");
    call(&client, bad, "known").await.expect(200);
    call(&client, "192.0.2.1", "fresh").await.expect(200);
    // A valid token costs nothing.
    cluster.pass(Duration::from_secs(2));
    call(&client, bad, "other").await.expect(200);
    call(&client, bad, "invented-6")
        .await
        .refused(401, "UNAUTHENTICATED");
}

// On one thread, so that what the node logs is what this thread's subscriber gets.
#[tokio::test]
async fn tokens_that_the_server_cannot_answer_about_cost_as_much_as_refused_ones_and_do_not_fill_the_log()
 {
    let log = Log::keep("info");
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| {
        proxied(config, &provider);
        config.rates.enabled = true;
        (config.rates.address, config.rates.reads) = (0, 0);
        (
            config.rates.refused_tokens,
            config.rates.refused_tokens_burst,
        ) = (1, 5);
    })
    .await;
    let client = cluster.client(None);
    let good = active(cluster.tenant.as_str(), "approver", "alice");
    // Each address has a token that makes the server fail, and a valid one.
    for number in 0..30 {
        let address = format!("192.0.2.{number}");
        let [odd, valid] = ["odd", "valid"].map(|kind| format!("{kind}-{number}"));
        provider.know(&odd, Says::Text(400, "what?".into()));
        provider.know(&valid, Says::Json(good.clone()));
        let refused = call(&client, &address, &odd).await;
        refused.refused(503, "UNAVAILABLE");
        call(&client, &address, &valid).await.expect(200);
    }
    let logged = log.text();
    let lines = logged.matches("be introspected").count();
    assert!((2..=20).contains(&lines), "{lines} lines");
    // One address gets no further.
    let bad = "198.51.100.1";
    let mut statuses = Vec::new();
    for number in 0..8 {
        let token = format!("stray-{number}");
        provider.know(&token, Says::Text(500, "no".into()));
        statuses.push(call(&client, bad, &token).await.status);
    }
    assert_eq!(statuses[..5], [503; 5]);
    assert_eq!(statuses[7], 429, "{statuses:?}");
    call(&client, "192.0.2.99", "valid-0").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_tokens_push_out_none_that_was_used_once() {
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| {
        by_introspection(config, &provider);
        config.auth.introspection_cache_entries = 20;
    })
    .await;
    let good = active(cluster.tenant.as_str(), "approver", "alice");
    let take = async |token: &str| cluster.client(Some(token)).get(INBOX).await.status;
    let invent = async |numbers: std::ops::Range<usize>| {
        for number in numbers {
            assert_eq!(take(&format!("invented-{number}")).await, 401);
        }
    };
    // Before as well: what comes to a cache that is not full has a better place than what comes
    // later.
    invent(0..100).await;
    for number in 0..10 {
        let token = format!("good-{number}");
        provider.know(&token, Says::Json(good.clone()));
        assert_eq!(take(&token).await, 200);
    }
    invent(100..200).await;
    let asked = provider.asked();
    for number in 0..10 {
        assert_eq!(take(&format!("good-{number}")).await, 200);
    }
    assert_eq!(provider.asked(), asked, "all of them are still known");
}
