//! Migrating while others work: nobody queues behind a migration that waits for somebody's lock.

use std::time::Duration;

use countersign::store::schema;
use futures_util::future::join_all;

use crate::support::database::{Database, finish};

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_gives_way_to_a_long_reader_and_is_done_once_that_is_gone() {
    let database = Database::create().await;
    // As it was before that migration: without its view, and with fewer columns in the other.
    database
        .run(
            "delete from _sqlx_migrations where version = 5;
             drop view decision_latency;
             alter view exchange_history rename to later;
             create view exchange_history as
             select tenant_id, request_id, state, enforcer_id, approver_ids, artifact_type, artifact_hash, accepted_at,
                    expires_at, decided_at, decision, decided_by, signer_key_id, verified, delivered_at, ended_at,
                    time_to_decision
               from later",
        )
        .await;
    let mut reader = database.connect().await;
    let read = "select count(*) from exchange_history";
    finish(&mut reader, &format!("begin; {read}")).await;
    let applied = "select count(*) from _sqlx_migrations where version = 5 and success";
    let reading = async {
        database.blocked(1).await;
        // Behind the migration, which is behind the reader.
        let others = tokio::time::timeout(Duration::from_secs(10), database.number(read)).await;
        assert_eq!(others, Ok(0), "the migration gave way");
        assert_eq!(database.number(applied).await, 0);
        finish(&mut reader, "commit").await;
    };
    let (migrated, ()) = tokio::join!(schema::migrate(&database.url), reading);
    migrated.expect("it has not given up");
    assert_eq!(database.number(applied).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_may_migrate_at_once() {
    let database = Database::empty("migrated_by_several").await;
    for migrated in join_all((0..4).map(|_| schema::migrate(&database.url))).await {
        migrated.expect("the schema is up to date");
    }
}
