//! Migrating while others work: nobody queues behind a migration that waits for somebody's lock, or
//! that rewrites a table; and nobody has more rights until the roles are made again.

use std::time::Duration;

use countersign::store::database::schema;
use futures_util::future::join_all;
use sqlx::PgConnection;

use crate::support::database::{Database, finish};
use crate::support::roles::Roles;

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

/// The first migration that is applied to a database with rows.
const NEW: &str = "0002";

/// Applies the migrations whose file names are in this range.
async fn apply(connection: &mut PgConnection, chosen: impl Fn(&str) -> bool) {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        if chosen(file.file_name().unwrap().to_str().unwrap()) {
            finish(connection, &std::fs::read_to_string(&file).unwrap()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_table_that_was_there_is_rewritten() {
    let database = Database::empty("migrated_with_rows").await;
    let mut connection = database.connect().await;
    apply(&mut connection, |name| name < NEW).await;
    database
        .run(
            "insert into tenants (tenant_id, name) values ('t', 't');
             insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                    artifact_type, artifact_hash, accepted_at, expires_at)
             select 't', n::text, gen_random_uuid(), gen_random_uuid(), 'pendingApproval', 1, 'build-bot', 'sealed', 'x', 'y',
                    clock_timestamp(), 'infinity'
               from generate_series(1, 100) n",
        )
        .await;
    // Tables, what of theirs is stored apart, and their indexes: each has a new file if it was
    // written anew.
    let files = "create table files_before as
                 select oid, relname, pg_relation_filenode(oid) as file
                   from pg_class
                  where relkind in ('r', 't', 'i') and oid >= 16384 and relname <> 'files_before'";
    database.run(files).await;
    apply(&mut connection, |name| name >= NEW).await;
    let rewritten = "select coalesce(string_agg(f.relname, ' '), '')
                       from files_before f join pg_class c using (oid)
                      where f.file <> pg_relation_filenode(c.oid)";
    assert_eq!(database.text(rewritten).await, "");
    let kept = "select count(*) from files_before f join pg_class c using (oid) where c.relname = 'exchanges'";
    assert_eq!(database.number(kept).await, 1);
    // The words of a domain hold for rows that were there before.
    let wrong = sqlx::raw_sql("update exchanges set verification = 'perhaps'")
        .execute(&mut connection)
        .await;
    let refused = wrong.unwrap_err().into_database_error().unwrap();
    assert_eq!(refused.code().as_deref(), Some("23514"));
}

#[tokio::test(flavor = "multi_thread")]
async fn until_the_roles_are_made_again_nodes_work_and_nobody_can_remove_history() {
    let database = Database::empty("migrated_before_roles").await;
    let roles = Roles::make(&database, "*").await;
    let [owner, application] = ["owner", "application"].map(|role| roles.name(role));
    // As the script of the previous release left it: everyone may call a new function.
    database
        .run(&format!(
            "alter default privileges for role {owner} grant execute on functions to public;
             alter default privileges for role {owner} in schema public revoke execute on functions from {application}"
        ))
        .await;
    let mut migrating = roles.connect("owner").await;
    apply(&mut migrating, |_| true).await;
    database
        .run(
            "insert into audit_events (tenant_id, at, event_id, actor, action, subject, node)
             select 't', clock_timestamp() - make_interval(days => days), gen_random_uuid(), 'a', 'b', 'c', 'd'
               from (values (1), (399), (401)) as v (days);
             insert into exchange_events (tenant_id, request_id, at, event_id, to_state, actor, node)
             select 't', 'r', clock_timestamp() - make_interval(days => days), gen_random_uuid(), 'decided', 'a', 'n'
               from (values (1), (89), (91)) as v (days)",
        )
        .await;
    let forget = [
        "select forget_audit_events('t', 'infinity', 100)",
        "select forget_exchange_events('t', array['r'])",
    ];
    let lower = [
        "update retention_floors set keep = '0'",
        "delete from retention_floors",
        "insert into retention_floors (history, keep) values ('other', '0')",
    ];
    let mut reader = roles.connect("reader").await;
    let mut node = roles.connect("application").await;
    for sql in forget {
        assert_eq!(refusal(&mut reader, sql).await.as_deref(), Some("42501"));
    }
    for sql in lower {
        assert_eq!(refusal(&mut node, sql).await.as_deref(), Some("42501"));
    }
    for sql in ["select from retention_floors"].into_iter().chain(forget) {
        assert_eq!(refusal(&mut node, sql).await, None, "{sql}");
    }
    let left = "select concat_ws(' ', (select count(*) from audit_events), (select count(*) from exchange_events))";
    assert_eq!(database.text(left).await, "2 2", "what is past the default");
    drop((reader, node, migrating));
    roles.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_own_the_tables_keep_history_for_as_long_as_they_are_configured_to() {
    let database = Database::create().await;
    let floors = "select count(*) from retention_floors";
    assert_eq!(database.number(floors).await, 0);
}

/// The code with which a statement is refused, if it is.
async fn refusal(connection: &mut PgConnection, sql: &str) -> Option<String> {
    let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(connection)
        .await;
    let error = done.err()?.into_database_error().expect("a refusal");
    Some(error.code().expect("a code").into_owned())
}
