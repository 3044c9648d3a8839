//! How late a message is offered again, which is about the node and not about who was away.

use std::time::Duration;

use crate::support::push::Socket;
use crate::support::scrape::scrape;
use crate::support::{Cluster, compact, request_id, sealed, until};

#[tokio::test(flavor = "multi_thread")]
async fn redelivery_is_late_on_its_own_channel_only() {
    let cluster = Cluster::with(1, |config| config.wake.sweep_ms = 500).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let connect = async || {
        let url = &cluster.nodes[0].url;
        Socket::connect(url, "enforcer", "build-bot", enforcer.client.key())
            .await
            .unwrap()
    };
    let lag = async |suffix: &str| {
        let name = format!("countersign_sweep_lag_seconds_{suffix}");
        let read = scrape(&cluster.nodes[0].metrics).await;
        read.count(&name, &[("sweep", "redelivery")])
    };
    let mut socket = connect().await;
    let request = request_id();
    let submitted = enforcer.submit(&request, "alice", sealed()).await;
    submitted.expect(202);
    let decided = approver.decide(&request, compact("approve")).await;
    decided.expect(200);
    socket.expect_type("decision.deliver").await;
    drop(socket);
    until("it is off the books", Duration::from_secs(10), async || {
        cluster
            .database
            .number("select count(*) from channels")
            .await
            == 0
    })
    .await;

    cluster.pass(Duration::from_secs(3_600));
    let mut socket = connect().await;
    socket.expect_type("decision.deliver").await;
    assert!(lag("count").await < 0.5, "nobody was there to be late for");

    // The pause after the first offer is ten seconds.
    cluster.pass(Duration::from_secs(15));
    socket.expect_type("decision.deliver").await;
    assert!((lag("count").await - 1.0).abs() < 0.5, "one repeat");
    let late = lag("sum").await;
    assert!((5.0..60.0).contains(&late), "{late} s late");
}
