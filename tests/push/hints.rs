//! Receivers of a submission's hint: other nodes, if there are any, and those who begin to listen
//! meanwhile.

use std::time::Duration;

use countersign::config::Config;
use countersign::protocol::id::{ApproverId, TextId as _};
use countersign::protocol::wake_key::WakeKey;
use futures_util::future::join_all;
use serde_json::json;
use sqlx::postgres::PgListener;
use sqlx::{Connection as _, Executor as _};
use tokio::time::timeout;

use super::approver_socket;
use crate::support::push::Socket;
use crate::support::{Cluster, Enforcer, request_id, sealed, until, with};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// Neither polls nor repeats make up for a hint.
fn only_hints(config: &mut Config) {
    config.wake.sweep_ms = 600_000;
    config.push.reoffer_seconds = 600;
    config.push.reoffer_max_seconds = 600;
}

async fn asks(enforcer: &Enforcer, approver: &str) -> String {
    let request = request_id();
    let taken = enforcer.on(0).submit(&request, approver, sealed()).await;
    taken.expect(202);
    request
}

async fn is_asked(socket: &mut Socket, request: &str) {
    let asked = socket.expect_type("approval.request").await;
    assert_eq!(asked["requestId"], request);
}

/// The next hint that names someone.
async fn hint(listener: &mut PgListener) -> String {
    loop {
        let heard = timeout(PATIENCE, listener.recv()).await.expect("a hint");
        let heard = heard.unwrap().payload().to_owned();
        if heard.starts_with("m ") {
            return heard;
        }
    }
}

/// The next payload that is no canary of the node's own.
async fn heard(listener: &mut PgListener, own: &str) -> String {
    loop {
        let heard = timeout(PATIENCE, listener.recv()).await.expect("a hint");
        let heard = heard.unwrap().payload().to_owned();
        if heard != own {
            return heard;
        }
    }
}

/// Submits until no hint is heard of it.
async fn until_alone(enforcer: &Enforcer, listener: &mut PgListener) {
    let alone = async {
        loop {
            asks(enforcer, "alice").await;
            let next = timeout(Duration::from_millis(700), hint(listener)).await;
            if next.is_err() {
                return;
            }
        }
    };
    timeout(PATIENCE, alone).await.expect("it is alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_sends_hints_once_it_hears_another_one() {
    let cluster = Cluster::with(1, |config| {
        config.wake.canary_ms = 200;
        config.wake.canary_timeout_ms = 100;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let mut listener = PgListener::connect(&cluster.database.url).await.unwrap();
    listener.listen("countersign").await.unwrap();
    let own = timeout(PATIENCE, listener.recv()).await.unwrap().unwrap();
    let own = own.payload().to_owned();
    assert!(own.starts_with("c "), "{own}");
    // It may be alone, and knows only once it would have heard others.
    until_alone(&enforcer, &mut listener).await;
    let other = "c 00000000-0000-4000-8000-000000000000";
    let sql = format!("select pg_notify('countersign', '{other}')");
    cluster.database.run(&sql).await;
    assert_eq!(heard(&mut listener, &own).await, other);
    // It may have missed something before.
    let everyone = heard(&mut listener, &own).await;
    assert!(everyone.starts_with("* "), "{everyone}");
    asks(&enforcer, "alice").await;
    hint(&mut listener).await;
    // And when the other has been silent for long, there is nobody to tell.
    until_alone(&enforcer, &mut listener).await;
}

/// Without polls and repeats, only the hints bring them: first fewer than a waiter keeps ids of, then more, with large ones, which are not
/// named.
#[tokio::test(flavor = "multi_thread")]
async fn every_channel_on_another_node_gets_each_of_many_requests_once() {
    let cluster = Cluster::with(2, only_hints).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let mut sockets = [
        approver_socket(&cluster, 1, &alice).await,
        approver_socket(&cluster, 1, &alice).await,
    ];
    let here = enforcer.on(0);
    for count in [8, 8, 8, 8, 8, 50] {
        let submitted = join_all((0..count).map(async |n| {
            let request = request_id();
            let bytes = if n > 0 && n % 10 == 0 { n << 11 } else { 64 };
            let body = with(&sealed(), "/ciphertext/data", json!("A".repeat(bytes)));
            here.submit(&request, "alice", body).await.expect(202);
            request
        }));
        let mut submitted = submitted.await;
        submitted.sort();
        for socket in &mut sockets {
            let mut came = Vec::new();
            while came.len() < submitted.len() {
                let asked = socket.expect_type("approval.request").await;
                came.push(asked["requestId"].as_str().unwrap().to_owned());
            }
            came.sort();
            assert_eq!(came, submitted);
        }
    }
}

/// Two approvers whose keys have one digest are woken together.
#[tokio::test(flavor = "multi_thread")]
async fn a_hint_that_names_the_message_of_another_approver_brings_nothing() {
    let cluster = Cluster::with(2, only_hints).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let mut socket = approver_socket(&cluster, 1, &alice).await;
    let earlier = asks(&enforcer, "alice").await;
    is_asked(&mut socket, &earlier).await;
    let for_bob = asks(&enforcer, "bob").await;
    let message = "select message_id::text from inbox_items where request_id = ";
    let message = cluster
        .database
        .text(&format!("{message}'{for_bob}'"))
        .await;
    let key = WakeKey::Approver(cluster.tenant.clone(), ApproverId::parse("alice").unwrap());
    let hint = format!("m somebody {:016x}:{message}", key.digest());
    cluster
        .database
        .run(&format!("select pg_notify('countersign', '{hint}')"))
        .await;
    let later = asks(&enforcer, "alice").await;
    is_asked(&mut socket, &later).await;
}

/// The first look of a channel that opens during a submission may be over before that commits.
#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_opens_during_a_submission_still_gets_it() {
    let cluster = Cluster::with(2, |config| {
        only_hints(config);
        config.database.lock_timeout_ms = 4_500;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let before = asks(&enforcer, "alice").await;

    let request = request_id();
    let mut connection = cluster.database.connect().await;
    let mut twin = connection.begin().await.unwrap();
    let sql = format!(
        "insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                artifact_type, artifact_hash, accepted_at, expires_at)
         values ('{}', '{request}', gen_random_uuid(), gen_random_uuid(), 'pendingApproval', 1, 'build-bot', 'sealed',
                 'command.review', repeat('ab', 32), now(), now() + interval '1 day')",
        cluster.tenant
    );
    twin.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
    let here = enforcer.on(0);
    let submitting = here.submit(&request, "alice", sealed());
    let opening = async {
        until("the submission waits", PATIENCE, async || {
            let waiting = "select count(*) from pg_stat_activity
                            where wait_event_type = 'Lock' and datname = current_database()";
            cluster.database.number(waiting).await > 0
        })
        .await;
        let mut socket = approver_socket(&cluster, 1, &alice).await;
        // The earlier request is sent, so that the first look is over.
        is_asked(&mut socket, &before).await;
        twin.rollback().await.unwrap();
        socket
    };
    let (submitted, mut socket) = tokio::join!(submitting, opening);
    submitted.expect(202);
    is_asked(&mut socket, &request).await;
}
