//! The life of a channel: who may open one, and what ends it.

use std::time::Duration;

use countersign::gateway::identity::administration::CredentialRequest;
use countersign::protocol::credential::{CredentialKind, CredentialProfile};
use countersign::protocol::id::{CredentialId, TextId as _};
use countersign::protocol::timestamp::Timestamp;
use countersign::store::identity::credential::RoleName;

use super::{approver_socket, approver_stream, enforcer_socket, scene};
use crate::support::database::finish;
use crate::support::push::{Socket, Stream};
use crate::support::{Cluster, compact, http, request_id, sealed, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_refused_over_http_before_the_upgrade() {
    let (cluster, enforcer, approver) = scene(1).await;
    let url = &cluster.nodes[0].url;
    let (enforcer_key, approver_key) = (enforcer.client.key(), approver.client.key());
    for (role, id, key, status) in [
        ("enforcer", "build-bot", "csk_no_such", 401),
        ("enforcer", "another", enforcer_key, 403),
        ("approver", "build-bot", enforcer_key, 403),
        ("enforcer", "alice", approver_key, 403),
        ("admin", "build-bot", enforcer_key, 400),
    ] {
        assert_eq!(
            Socket::connect(url, role, id, key).await.err(),
            Some(status),
            "{role} {id}"
        );
    }
    for (kind, id, key, status) in [
        ("approvers", "alice", "csk_no_such", 401),
        ("approvers", "bob", approver_key, 403),
        ("approvers", "alice", enforcer_key, 403),
        ("enforcers", "another", enforcer_key, 403),
    ] {
        assert_eq!(
            Stream::connect(url, kind, id, key, None).await.err(),
            Some(status),
            "{kind} {id}"
        );
    }
    enforcer
        .client
        .get("/v1/ws?role=enforcer&id=build-bot")
        .await
        .refused(400, "VALIDATION");
    let call = approver
        .client
        .call(reqwest::Method::GET, "/v1/sse/approvers/alice");
    call.header("origin", "https://elsewhere.example")
        .send()
        .await
        .refused(403, "FORBIDDEN");
    assert_eq!(cluster.nodes[0].gateway.channels.channel_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_credential_ends_its_channels_on_every_node() {
    let (cluster, enforcer, approver) = scene(2).await;
    let mut socket = enforcer_socket(&cluster, 0, &enforcer).await;
    let mut stream = approver_stream(&cluster, 1, &approver, None).await;
    for key in [enforcer.client.key(), approver.client.key()] {
        let id = key.split('_').nth(1).unwrap();
        cluster
            .admin()
            .await
            .delete(&format!("/platform/v1/credentials/{id}"))
            .await
            .expect(204);
    }
    let revoked = std::time::Instant::now();
    assert_eq!(socket.closed().await, 1008);
    stream.ended().await;
    assert!(revoked.elapsed() < Duration::from_secs(6), "within 5 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_ends_channels_though_calls_get_no_connection() {
    let cluster = Cluster::with(1, |config| {
        config.database.pool_size = 1;
        config.database.lock_timeout_ms = 60_000;
        config.database.statement_timeout_ms = 60_000;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let request = request_id();
    let taken = enforcer.submit(&request, "alice", sealed()).await;
    taken.expect(202);
    let mut socket = enforcer_socket(&cluster, 0, &enforcer).await;
    // The one connection that calls share waits for a lock, which is on no row.
    let lock = "lock table exchange_events in exclusive mode";
    let mut lock = cluster.database.holding(lock).await;
    let (caller, id) = (enforcer.on(0), enforcer.client.key());
    let waiting = tokio::spawn(async move { caller.withdraw(&request).await.status });
    cluster.database.blocked_in("approver_messages as (").await;
    let id = CredentialId::parse(id.split('_').nth(1).unwrap()).unwrap();
    let administration = &cluster.administration;
    let revoked = administration.revoke_credential(&id).await;
    revoked.unwrap();
    assert_eq!(socket.closed().await, 1008);
    finish(&mut lock, "rollback").await;
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_node_sends_its_channels_away_and_they_miss_nothing() {
    let (mut cluster, enforcer, approver) = scene(2).await;
    let mut socket = enforcer_socket(&cluster, 0, &enforcer).await;
    let mut stream = approver_stream(&cluster, 0, &approver, None).await;
    let request = request_id();
    enforcer
        .on(1)
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    stream.expect().await;
    let draining = cluster.nodes.remove(0);
    let (code, (), ()) = tokio::join!(socket.closed(), stream.ended(), draining.stop());
    assert_eq!(code, 1001);
    assert_eq!(
        cluster.database.number("select count(*) from nodes").await,
        1
    );
    let mut socket = enforcer_socket(&cluster, 0, &enforcer).await;
    approver
        .on(1)
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    assert_eq!(socket.expect().await["msgType"], "decision.deliver");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_channels_of_one_identity_cost_it_the_oldest() {
    let cluster = Cluster::with(1, |config| config.limits.channels_per_identity = 2).await;
    let approver = cluster.approver("alice").await;
    let mut oldest = approver_socket(&cluster, 0, &approver).await;
    let _second = approver_socket(&cluster, 0, &approver).await;
    let _third = approver_socket(&cluster, 0, &approver).await;
    assert_eq!(oldest.closed().await, 1008);
    until("two are left", Duration::from_secs(5), async || {
        cluster.nodes[0].gateway.channels.channel_count() == 2
    })
    .await;
    let cluster = Cluster::with(1, |config| config.limits.channels_per_node = 1).await;
    let approver = cluster.approver("alice").await;
    let _only = approver_socket(&cluster, 0, &approver).await;
    let refused = approver
        .client
        .get("/v1/sse/approvers/alice")
        .await
        .refused(503, "UNAVAILABLE");
    assert!(refused.header("retry-after").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_gone_leaves_no_channel_behind() {
    let (cluster, enforcer, approver) = scene(1).await;
    let socket = enforcer_socket(&cluster, 0, &enforcer).await;
    let stream = approver_stream(&cluster, 0, &approver, None).await;
    assert_eq!(
        cluster
            .database
            .number("select count(*) from channels")
            .await,
        2
    );
    drop((socket, stream));
    until(
        "both are taken off the books",
        Duration::from_secs(10),
        async || {
            cluster
                .database
                .number("select count(*) from channels")
                .await
                == 0
                && cluster.nodes[0].gateway.channels.channel_count() == 0
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_may_list_more_than_is_asked_for() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let address = cluster.nodes[0].url.replace("http://", "");
    for (headers, status) in [
        ("Connection: Upgrade\r\nUpgrade: websocket", "101"),
        (
            "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket",
            "101",
        ),
        (
            "Connection: keep-alive\r\nConnection:\tupgrade\r\nUpgrade: websocket, other",
            "101",
        ),
        ("Connection: keep-alive\r\nUpgrade: websocket", "400"),
        ("Connection: Upgrade\r\nUpgrade: other", "400"),
    ] {
        let mut raw = tokio::net::TcpStream::connect(&address).await.unwrap();
        let handshake = format!(
            "GET /v1/ws?role=enforcer&id=build-bot HTTP/1.1\r\nHost: test\r\n{headers}\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Authorization: Bearer {}\r\n\r\n",
            enforcer.client.key()
        );
        raw.write_all(handshake.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        raw.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer[9..], status.as_bytes(), "{headers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_never_answers_a_ping_is_let_go() {
    let cluster = Cluster::with(1, |config| {
        config.push.ping_seconds = 1;
        config.push.idle_seconds = 3;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    // A handshake by hand, and then silence: nothing reads, so nothing answers.
    let address = cluster.nodes[0].url.replace("http://", "");
    let mut raw = tokio::net::TcpStream::connect(&address).await.unwrap();
    let handshake = format!(
        "GET /v1/ws?role=enforcer&id=build-bot HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: countersign, bearer.{}\r\n\r\n",
        enforcer.client.key()
    );
    tokio::io::AsyncWriteExt::write_all(&mut raw, handshake.as_bytes())
        .await
        .unwrap();
    let inactive = "select count(*) from channels where not active";
    until("it is not active", Duration::from_secs(10), async || {
        cluster.database.number(inactive).await == 1
    })
    .await;
    until("it is gone", Duration::from_secs(10), async || {
        cluster.nodes[0].gateway.channels.channel_count() == 0
    })
    .await;
    let mut said = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut raw, &mut said)
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&said).to_lowercase();
    assert!(
        said.contains("sec-websocket-protocol: countersign\r\n"),
        "the token is not echoed: {said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_ends_with_its_credential() {
    let cluster = Cluster::start(1).await;
    let at = crate::support::in_time(3);
    let request = CredentialRequest {
        role: RoleName::Enforcer,
        bound_id: Some("build-bot".into()),
        unbound: false,
        kind: CredentialKind::ApiKey,
        profile: CredentialProfile::Strict,
        expires_at: Timestamp::parse(&at),
    };
    let made = cluster
        .administration
        .create_credential(&cluster.tenant, request)
        .await
        .unwrap();
    let key = made.api_key.unwrap();
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "enforcer", "build-bot", &key)
        .await
        .unwrap();
    let mut stream = Stream::connect(url, "enforcers", "build-bot", &key, None)
        .await
        .unwrap();
    let (code, ()) = tokio::join!(socket.closed(), stream.ended());
    assert_eq!(code, 1008);
    assert_eq!(
        Socket::connect(url, "enforcer", "build-bot", &key)
            .await
            .err(),
        Some(401)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_stream_begins_at_once_and_is_pinged() {
    let cluster = Cluster::with(1, |config| config.push.sse_ping_seconds = 1).await;
    let approver = cluster.approver("alice").await;
    let url = format!("{}/v1/sse/approvers/alice", cluster.nodes[0].url);
    let request = (http().build().unwrap())
        .get(url)
        .bearer_auth(approver.client.key());
    let mut response = request.send().await.unwrap();
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let mut said = String::new();
    let reading = async {
        while said.matches("event: ping\n").count() < 2 {
            said.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading)
        .await
        .expect("pings in time");
    assert!(said.starts_with("retry: 2000\n\n"), "{said}");
}
