//! Memory that abuse has taken goes back to the system.

use std::time::Duration;

use futures_util::future::{join_all, join3};
use reqwest::Method;
use serde_json::json;

use super::{honest, honest_work};
use crate::support::fleet::{Fleet, resident_kib};
use crate::support::push::Socket;
use crate::support::{Cluster, request_id, sealed, until, with};

/// The node may keep this much more than it had before.
const KEPT_KIB: u64 = 48 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_abuse_has_taken_comes_back() {
    let cluster = Cluster::start(1).await;
    let fleet = Fleet::start(&cluster.database.url, 1);
    let (enforcer, approver) = honest(&cluster, &fleet).await;
    honest_work(&enforcer, &approver, Duration::from_millis(300)).await;
    let before = resident_kib(fleet.pid(0));
    let large = with(&sealed(), "/ciphertext/data", json!("x".repeat(1_500_000)));
    let broken = format!("{{{}", " ".repeat(1_500_000));
    let mut most = 0;
    for wave in 0..6 {
        let id = format!("reader-{wave}");
        let reader = cluster.approver(&id).await.at(fleet.urls());
        let url = fleet.urls().remove(0);
        let listening =
            join_all((0..8).map(|_| Socket::connect(&url, "approver", &id, reader.client.key())))
                .await;
        // Some are told that there is no room for them now.
        let stored = join_all((0..8).map(|_| async {
            let stored = enforcer.submit(&request_id(), &id, large.clone()).await;
            stored.status
        }));
        let refused = join_all((0..40).map(|_| async {
            let call = enforcer.client.call(Method::POST, "/v1/artifacts");
            call.text(&broken).send().await.status
        }));
        let read = join_all((0..8).map(|_| async { reader.inbox("?limit=8").await.status }));
        join3(stored, refused, read).await;
        most = most.max(resident_kib(fleet.pid(0)));
        drop(listening);
    }
    assert!(most > before + KEPT_KIB, "the abuse took only {most} KiB");
    let kept = || resident_kib(fleet.pid(0)).saturating_sub(before);
    println!(
        "{most} KiB at most, {} KiB more than before at the end",
        kept()
    );
    until(
        "the memory is given back",
        Duration::from_secs(60),
        async || {
            honest_work(&enforcer, &approver, Duration::from_millis(300)).await;
            kept() < KEPT_KIB
        },
    )
    .await;
    println!("{} KiB more than before later", kept());
}
