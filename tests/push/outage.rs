//! A database that is away for longer than a node's lease: channels stay open, say so, and go on
//! afterwards.

use std::time::Duration;

use countersign::config::Secret;
use futures_util::future::{join_all, select_all};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::{approver_socket, enforcer_socket};
use crate::support::database::Database;
use crate::support::exchanges::decided;
use crate::support::proxy::Proxy;
use crate::support::push::{PATIENCE, Socket, Stream};
use crate::support::{Cluster, compact, http, request_id, sealed, until};

/// The node whose database goes away. The other one's stays.
const CUT_OFF: usize = 1;

/// Two nodes; the second reaches the database through a proxy.
async fn scene(outage_seconds: u64) -> (Cluster, Proxy) {
    let database = Database::create().await;
    let proxy = Proxy::start(&database.url).await;
    let cluster = Cluster::on(database, 2, |config| {
        config.push.reoffer_seconds = 600;
        config.push.reoffer_max_seconds = 600;
        config.push.ping_seconds = 2;
        config.push.sse_ping_seconds = 2;
        config.push.drain_spread_ms = 4_000;
        config.push.outage_seconds = outage_seconds;
        if config.node.id == "node-1" {
            config.database.url = Secret::from(proxy.url.as_str());
        }
    })
    .await;
    (cluster, proxy)
}

async fn removed(cluster: &Cluster) {
    let nodes = "select count(*) from nodes where name = 'node-1'";
    until(
        "the other node removed it",
        Duration::from_secs(60),
        async || cluster.database.number(nodes).await == 0,
    )
    .await;
}

async fn expired(cluster: &Cluster) {
    let lease = "select count(*) from nodes
                  where name = 'node-1' and heartbeat_at < clock_timestamp() - interval '16 seconds'";
    until("the lease is over", Duration::from_secs(30), async || {
        cluster.database.number(lease).await == 1
    })
    .await;
}

/// The stream of an approver as text, until it says this.
async fn says(cluster: &Cluster, key: &str, words: &str) {
    let url = format!("{}/v1/sse/approvers/bob", cluster.nodes[CUT_OFF].url);
    let request = http().build().unwrap().get(url).bearer_auth(key);
    let mut response = request.send().await.unwrap();
    let mut said = String::new();
    while !said.contains(words) {
        let chunk = response.chunk().await.unwrap().expect("it stays open");
        said.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

/// A socket of an approver, until a ping says this.
async fn is_pinged(cluster: &Cluster, key: &str, words: &str) {
    let url = format!("{}/v1/ws?role=approver&id=bob", cluster.nodes[CUT_OFF].url);
    let mut request = url.replace("http:", "ws:").into_client_request().unwrap();
    let bearer = format!("Bearer {key}").parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    loop {
        match socket.next().await.expect("it stays open").unwrap() {
            Message::Ping(payload) if payload == words => return,
            Message::Close(_) => panic!("it was closed"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_outlive_an_outage_and_go_on_where_they_were() {
    let (cluster, proxy) = scene(300).await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let (first, second) = (cluster.enforcer("one").await, cluster.enforcer("two").await);
    let url = &cluster.nodes[CUT_OFF].url;
    let mut approving = approver_socket(&cluster, CUT_OFF, &alice).await;
    let key = alice.client.key();
    let mut watching = Stream::connect(url, "approvers", "alice", key, None)
        .await
        .unwrap();
    let mut enforcing = enforcer_socket(&cluster, CUT_OFF, &first).await;
    let key = second.client.key();
    let mut streaming = Stream::connect(url, "enforcers", "two", key, None)
        .await
        .unwrap();

    let told = async {
        let words = ": the database is unavailable\n";
        let pinged = is_pinged(&cluster, bob.client.key(), "the database is unavailable");
        tokio::join!(says(&cluster, bob.client.key(), words), pinged)
    };
    let quiet = async {
        // They are read all the time, as a client does, which also answers pings.
        let ended = select_all([
            async { format!("{:?}", approving.next().await) }.boxed(),
            async { format!("{:?}", watching.next().await) }.boxed(),
            async { format!("{:?}", enforcing.next().await) }.boxed(),
            async { format!("{:?}", streaming.next().await) }.boxed(),
        ]);
        panic!("something came or ended: {}", ended.await.0);
    };
    let away = async {
        let open = "select count(*) from channels where identity in ('bob', 'alice')";
        until("all are open", PATIENCE, async || {
            cluster.database.number(open).await == 4
        })
        .await;
        proxy.refuse(true);
        proxy.cut();
        removed(&cluster).await;
    };
    tokio::select! {
        _ = async { tokio::join!(away, told) } => {}
        () = quiet => {}
    }

    // Requests from during the outage, and from after it.
    let alice = alice.on(0);
    let before = [
        decided(&first.on(0), &alice).await,
        decided(&second.on(0), &alice).await,
    ];
    let waiting = request_id();
    first
        .on(0)
        .submit(&waiting, "alice", sealed())
        .await
        .expect(202);
    proxy.refuse(false);
    assert_eq!(enforcing.expect().await["requestId"], before[0].as_str());
    assert_eq!(streaming.expect().await.1["requestId"], before[1].as_str());
    assert_eq!(approving.expect().await["requestId"], waiting.as_str());
    assert_eq!(watching.expect().await.1["requestId"], waiting.as_str());
    alice.decide(&waiting, compact("approve")).await.expect(200);
    assert_eq!(enforcing.expect().await["requestId"], waiting.as_str());
    let after = request_id();
    second
        .on(0)
        .submit(&after, "alice", sealed())
        .await
        .expect(202);
    assert_eq!(approving.expect().await["requestId"], after.as_str());
    assert_eq!(watching.expect().await.1["requestId"], after.as_str());
    alice.decide(&after, compact("approve")).await.expect(200);
    assert_eq!(streaming.expect().await.1["requestId"], after.as_str());
    // Exactly once: longer than the fallback poll and the heartbeat take.
    let long = Duration::from_secs(7);
    let again = async {
        tokio::join!(
            approving.is_silent(long),
            timeout(long, watching.next()),
            enforcing.is_silent(long),
            timeout(long, streaming.next()),
        )
    };
    let (approving, watching, enforcing, streaming) = again.await;
    assert!(approving && watching.is_err() && enforcing && streaming.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_revoked_during_an_outage_ends_its_channel_before_anything_is_sent() {
    let (cluster, proxy) = scene(300).await;
    let (alice, bot) = (
        cluster.approver("alice").await,
        cluster.enforcer("bot").await.on(0),
    );
    let mut socket = approver_socket(&cluster, CUT_OFF, &alice).await;
    proxy.refuse(true);
    proxy.cut();
    tokio::select! {
        () = expired(&cluster) => {}
        ended = socket.next() => panic!("something came or ended: {ended:?}"),
    }
    cluster
        .database
        .run(
            "update credentials set revoked_at = clock_timestamp(), changed_at = clock_timestamp()
                           where bound_id = 'alice'",
        )
        .await;
    bot.submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
    proxy.refuse(false);
    let ended = timeout(PATIENCE, socket.next()).await.expect("in time");
    assert_eq!(ended, Err(1008), "closed, and nothing sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_that_must_close_do_so_one_after_the_other() {
    let (cluster, proxy) = scene(1).await;
    let alice = cluster.approver("alice").await;
    let mut sockets: Vec<Socket> = Vec::new();
    for _ in 0..30 {
        sockets.push(approver_socket(&cluster, CUT_OFF, &alice).await);
    }
    proxy.refuse(true);
    proxy.cut();
    let closing = sockets.iter_mut().map(|socket| async {
        let code = timeout(Duration::from_secs(60), socket.next())
            .await
            .expect("in time");
        (code, Instant::now())
    });
    let closed = join_all(closing).await;
    assert!(
        closed.iter().all(|(code, _)| *code == Err(1001)),
        "{closed:?}"
    );
    let times = || closed.iter().map(|(_, at)| *at);
    let spread = times().max().unwrap() - times().min().unwrap();
    assert!(spread > Duration::from_secs(1), "within {spread:?}");
}
