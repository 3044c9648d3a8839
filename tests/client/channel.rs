//! Pushed messages arrive through any node, and an invalid channel is refused.

use countersign::client::approver::Approver;
use countersign::client::{ChannelRole, GatewayClient};
use countersign::client::{ChannelWatch, ClientError, GatewayLocation, PushedEvent};
use tokio::time::timeout;

use super::people::{ClientScene, PATIENCE, answers, refusing};
use crate::support::{Cluster, request_id, sealed};

async fn next(watch: &mut ChannelWatch<'_>) -> PushedEvent {
    let pushed = timeout(PATIENCE, watch.next()).await;
    pushed.expect("something comes").unwrap()
}

async fn pushed_item(watch: &mut ChannelWatch<'_>, alice: &Approver) -> String {
    loop {
        if let PushedEvent::Envelope(text) = next(watch).await
            && let Some(item) = alice.read_pushed(&text).await.unwrap()
        {
            alice
                .acknowledge(&item.request_id, &item.msg_id)
                .await
                .unwrap();
            return item.request_id.to_string();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_arrive_as_they_come_and_after_a_node_has_stopped() {
    let mut world = ClientScene::with(Cluster::start(2).await);
    let alice = world.approver("alice", "laptop").await;
    let plain = world.cluster.enforcer("plain").await;
    let mut watch = alice.watch();
    assert!(matches!(next(&mut watch).await, PushedEvent::Open));
    let first = request_id();
    plain
        .on(1)
        .submit(&first, "alice", sealed())
        .await
        .expect(202);
    assert_eq!(pushed_item(&mut watch, &alice).await, first);

    // It is connected to the first node, as long as that is there.
    world.cluster.nodes.remove(0).stop().await;
    loop {
        match next(&mut watch).await {
            PushedEvent::Interrupted(error) => assert!(error.is_unavailable(), "{error}"),
            PushedEvent::Open => break,
            PushedEvent::Envelope(_) => {}
        }
    }
    let second = request_id();
    let plain = plain.at(world.cluster.urls());
    plain.submit(&second, "alice", sealed()).await.expect(202);
    assert_eq!(pushed_item(&mut watch, &alice).await, second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_is_refused_ends_the_watch() {
    let world = ClientScene::start().await;
    let urls = world.cluster.urls();
    let location = GatewayLocation {
        urls: &urls,
        ..GatewayLocation::default()
    };
    let client = GatewayClient::new(&location, Some("no such key")).unwrap();
    let mut watch = client.watch(ChannelRole::Approver, "alice");
    let refused = timeout(PATIENCE, watch.next()).await.unwrap().unwrap_err();
    match refused {
        ClientError::Refused(refusal) => assert_eq!(refusal.status, 401),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_handshake_is_refused() {
    for text in [
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: c3RvbGVu\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        let urls = [answers(text.to_owned()).await];
        let location = GatewayLocation {
            urls: &urls,
            ..GatewayLocation::default()
        };
        let client = GatewayClient::new(&location, Some("key")).unwrap();
        let mut watch = client.watch(ChannelRole::Approver, "alice");
        let refused = timeout(PATIENCE, watch.next()).await.unwrap().unwrap_err();
        let expected = matches!(refused, ClientError::Answer(_) | ClientError::Refused(_));
        assert!(expected, "{text:?}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_away_is_tried_again_with_growing_pauses() {
    let (_socket, url) = refusing();
    let urls = [url];
    let location = GatewayLocation {
        urls: &urls,
        ..GatewayLocation::default()
    };
    let client = GatewayClient::new(&location, Some("key")).unwrap();
    let mut watch = client.watch(ChannelRole::Approver, "alice");
    let begun = tokio::time::Instant::now();
    for _ in 0..4 {
        assert!(matches!(
            next(&mut watch).await,
            PushedEvent::Interrupted(_)
        ));
    }
    // 250 ms, 500 ms and 1 s, each varied by a fifth.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(1_300));
}
