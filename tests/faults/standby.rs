//! Connections that lead to a server without writes. Nobody terminates them: a node must leave such
//! a server by itself.

use std::time::Duration;

use countersign::config::Secret;
use countersign::store::database::schema;

use super::becomes_ready;
use crate::support::database::{Database, Server};
use crate::support::proxy::Proxy;
use crate::support::{Cluster, Enforcer, request_id, sealed, until};

/// Waits until a submission is accepted.
async fn takes_submissions(enforcer: &Enforcer) {
    let (request, body) = (request_id(), sealed());
    until(
        "a submission is taken",
        Duration::from_secs(15),
        async || {
            let submitted = enforcer.submit(&request, "alice", body.clone()).await;
            submitted.status == 202
        },
    )
    .await;
}

/// Submits until the node has tried all it can, and is refused each time.
async fn refuses_submissions(enforcer: &Enforcer) {
    for _ in 0..10 {
        let refused = enforcer.submit(&request_id(), "alice", sealed()).await;
        refused.refused(503, "UNAVAILABLE");
    }
}

/// A cluster of one node whose connections lead through a proxy, also those that listen.
async fn behind(database: Database) -> (Cluster, Proxy) {
    let proxy = Proxy::start(&database.url).await;
    let cluster = Cluster::on(database, 1, |config| {
        config.database.url = Secret::from(proxy.url.as_str());
    })
    .await;
    (cluster, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_led_to_a_standby_for_a_while_leaves_no_connection_there() {
    let server = Server::with_standby();
    let standby = server.standby.as_deref().unwrap();
    schema::migrate(&server.url).await.unwrap();
    let (cluster, proxy) = behind(Database {
        url: server.url.clone(),
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    takes_submissions(&enforcer).await;
    let follower = Database {
        url: standby.to_owned(),
    };
    // The tables first: a query for one that is not there yet fails.
    for followed in [
        "select count(*) from pg_class where relname = 'exchanges' and relkind = 'r'",
        "select count(*) from exchanges",
    ] {
        until(
            "the standby has followed",
            Duration::from_secs(15),
            async || follower.number(followed).await == 1,
        )
        .await;
    }

    let client = cluster.client(None);
    proxy.lead_to(standby);
    proxy.cut();
    until("/readyz says why", Duration::from_secs(15), async || {
        client.get("/readyz").await.json()["status"] == "the database takes no writes"
    })
    .await;
    refuses_submissions(&enforcer).await;
    let there = "select count(*) from pg_stat_activity where application_name = 'countersign' and state = 'idle'";
    until(
        "no connection stays there",
        Duration::from_secs(15),
        async || follower.number(there).await == 0,
    )
    .await;

    // From now on the name leads to the primary. No connection breaks.
    proxy.lead_to(&server.url);
    takes_submissions(&enforcer).await;
    becomes_ready(&client, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_began_read_only_are_replaced_when_writes_are_taken_again() {
    let (cluster, proxy) = behind(Database::create().await).await;
    let enforcer = cluster.enforcer("build-bot").await;
    takes_submissions(&enforcer).await;
    let name = cluster.database.url.rsplit('/').next().unwrap();
    let turn = async |to: &str| {
        let change = format!("begin read write; alter database {name} {to}; commit");
        cluster.database.run(&change).await;
    };

    // A session keeps what was set when it began.
    turn("set default_transaction_read_only = on").await;
    proxy.cut();
    becomes_ready(&cluster.client(None), 503).await;
    refuses_submissions(&enforcer).await;
    turn("reset default_transaction_read_only").await;
    takes_submissions(&enforcer).await;
    becomes_ready(&cluster.client(None), 200).await;
}
