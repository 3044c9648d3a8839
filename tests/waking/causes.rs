//! Why a waiter was woken: what the fallback poll finds counts as missed, so a hint must not pass
//! for it.

use std::sync::Arc;

use countersign::config::WakeMode;
use countersign::protocol::id::{ApproverId, NodeId, TextId as _};
use countersign::store::Store;
use countersign::wake::{WakeCause, WakeHub, WakeKey};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::cluster::{config, metrics};
use crate::support::{Cluster, request_id, sealed};

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_that_was_not_seen_yet_is_still_a_hint_after_the_fallback_poll() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let submitted = enforcer.submit(&request_id(), "alice", sealed()).await;
    submitted.expect(202);

    // A hub that receives no hints, and whose fallback poll finds the same news again and again.
    let mut config = config(&cluster.database);
    config.wake.mode = WakeMode::Poll;
    config.wake.poll_ms = 20;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let node = NodeId::parse("another").unwrap();
    let store = Store::open(&config, &node, &cluster.clock, &metrics(), &tasks).unwrap();
    let store = Arc::new(store);
    let hub = WakeHub::start(&config, &cluster.clock, &[0; 32], &store, &tasks, &stop);
    let key = WakeKey::Approver(cluster.tenant.clone(), ApproverId::parse("alice").unwrap());
    let (mut sleeper, mut watcher) = (hub.register(key.clone()), hub.register(key.clone()));
    assert_eq!(watcher.woken().await, WakeCause::Poll);
    hub.wake([key]);
    while watcher.woken().await != WakeCause::Hint {}
    assert_eq!(watcher.woken().await, WakeCause::Poll, "it came by since");
    assert_eq!(
        sleeper.woken().await,
        WakeCause::Hint,
        "the first it sees of it"
    );
    assert_eq!(sleeper.woken().await, WakeCause::Poll, "and that only once");
    stop.cancel();
}
