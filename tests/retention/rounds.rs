//! A round of forgetting, and what goes wrong with it: it reads what is due and not what is kept,
//! and what fails keeps nothing else from being forgotten.

use std::time::Duration;

use crate::support::scrape::scrape;
use crate::support::{Cluster, until};

const PATIENCE: Duration = Duration::from_secs(20);
/// Rows of each table that are kept.
const KEPT: i64 = 3_000;
/// Rows of one table that a few rounds may read.
const MOST_READ: i64 = 300;
/// Tables whose rows are deleted by age.
const TABLES: [&str; 7] = [
    "exchanges",
    "prompts",
    "sessions",
    "session_snapshots",
    "audit_events",
    "idempotency_keys",
    "pairing_sessions",
];

/// Rows of everything that is forgotten, made `age` ago and past their time by then, if they have
/// one, `life` later.
async fn fill(cluster: &Cluster, count: i64, age: &str, life: &str) {
    let tenant = &cluster.tenant;
    cluster
        .database
        .run(&format!(
            "create temporary table made as
                 select gen_random_uuid() as id, n, now() - interval '{age}' as at, now() - interval '{age}' + interval '{life}' as ends
                   from generate_series(1, {count}) as n;
             insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                    artifact_type, artifact_hash, accepted_at, expires_at, decision, decided_at,
                                    delivered_at, ended_at)
             select '{tenant}', id::text, id, id, 'delivered', 1, 'build-bot', 'sealed', 'command.review', '', at, ends,
                    'approve', at, at, at
               from made;
             insert into exchange_payloads (tenant_id, request_id, part, body, stored_at)
             select '{tenant}', id::text, 'artifact', '{{}}', at from made;
             insert into prompts (tenant_id, request_id, submission_id, operation_id, message_id, enforcer_id, form,
                                  prompt_hash, status, ack_at, accepted_at, expires_at)
             select '{tenant}', id::text, id, id, id, 'build-bot', 'sealed', '', case when n % 2 = 0 then 'delivered' else 'queued' end,
                    at, at, ends
               from made;
             insert into prompt_payloads (tenant_id, request_id, body)
             select '{tenant}', id::text, '{{}}' from made;
             insert into sessions (tenant_id, session_id, enforcer_id, operation_id, state, updated_at, ended_at, end_reason,
                                   heard_at)
             select '{tenant}', id::text, 'build-bot', id, 'idle', at, at, 'user_end', at from made;
             insert into session_snapshots (tenant_id, session_id, snapshot_id, snapshot_type, snapshot_hash, created_at,
                                            received_at, body)
             select '{tenant}', id::text, 'one', 'plan', '', at, at, json_build_object('id', id, 'text', 'a plan') from made;
             insert into audit_events (tenant_id, at, event_id, actor, action, subject, node)
             select '{tenant}', at, id, 'operator', 'tenant.created', '', '' from made;
             insert into idempotency_keys (tenant_id, principal, key, fingerprint, submission_id, request_id, expires_at)
             select '{tenant}', 'somebody', id::text, '', id, id::text, ends from made;
             insert into pairing_sessions (tenant_id, nonce, operation_id, code_hash, enforcer_id, created_at, expires_at)
             select '{tenant}', id::text, id, uuid_send(id), 'build-bot', at, ends from made;
             insert into credentials (tenant_id, credential_id, kind, role, secret_hash, created_at, changed_at)
             select '{tenant}', id::text, 'apiKey', 'approver', '', at, now() - interval '1 day' from made"
        ))
        .await;
}

/// Waits until the database has counted that a row of each table was forgotten, and this many looks
/// at credentials.
async fn counted(cluster: &Cluster, times: i64) {
    let forgotten = format!(
        "select count(*) from pg_stat_user_tables where relname in ('{}') and n_tup_del >= {times}",
        TABLES.join("', '")
    );
    let looked =
        "select (coalesce(idx_scan, 0) + coalesce(seq_scan, 0))::bigint from pg_stat_user_tables
                   where relname = 'credentials'";
    until("what is due is gone", PATIENCE, async || {
        cluster.database.number(&forgotten).await == i64::try_from(TABLES.len()).unwrap()
            && cluster.database.number(looked).await >= times
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_reads_what_is_due_and_not_what_is_kept() {
    let cluster = Cluster::with(1, |config| {
        config.retention.every_seconds = 1;
        config.retention.scrub_seconds = 24 * 3_600;
        // One connection, which reports all that it has read at once.
        config.database.background_pool_size = 1;
    })
    .await;
    fill(&cluster, KEPT, "1 hour", "1 day").await;
    // As the database does by itself, within a minute. Rows read before it are not counted.
    cluster.database.run("analyze").await;
    for rounds in 1..=2 {
        cluster.database.run("select pg_stat_reset()").await;
        for round in 1..=rounds {
            fill(&cluster, 1, "1000 days", "1 hour").await;
            counted(&cluster, round).await;
        }
    }
    for table in TABLES.iter().chain(&["credentials"]) {
        let read = cluster.database.rows_read(table).await;
        println!("rows of {table} read: {read}");
        assert!(read <= MOST_READ, "{read} rows of {table} read");
        let kept = format!("select count(*) from {table}");
        assert!(cluster.database.number(&kept).await >= KEPT, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_scrubbed_is_not_read_again() {
    let cluster = Cluster::with(1, |config| {
        config.retention.every_seconds = 1;
        config.retention.scrub_seconds = 24 * 3_600;
        config.retention.share_percent = 100;
        config.database.background_pool_size = 1;
    })
    .await;
    fill(&cluster, KEPT, "2 days", "30 days").await;
    let left = "select (select count(*) from exchange_payloads) + (select count(*) from session_snapshots
                                                                    where body::text <> 'null')
                       + (select count(*) from prompt_payloads y join prompts p using (tenant_id, request_id)
                           where p.status <> 'queued')";
    until("all is scrubbed", PATIENCE, async || {
        cluster.database.number(left).await == 0
    })
    .await;
    cluster.database.run("vacuum analyze").await;
    for rounds in 1..=2 {
        cluster.database.run("select pg_stat_reset()").await;
        for round in 1..=rounds {
            fill(&cluster, 1, "1000 days", "1 hour").await;
            counted(&cluster, round).await;
        }
    }
    for table in [
        "exchanges",
        "exchange_payloads",
        "prompts",
        "sessions",
        "session_snapshots",
    ] {
        let read = cluster.database.rows_read(table).await;
        println!("rows of {table} read: {read}");
        assert!(read <= MOST_READ, "{read} rows of {table} read");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_keeps_nothing_else_from_being_forgotten_and_is_told() {
    let cluster = Cluster::with(1, |config| config.retention.every_seconds = 1).await;
    let rounds = async |outcome| {
        let read = scrape(&cluster.nodes[0].metrics).await;
        let labels = [("sweep", "retention"), ("outcome", outcome)];
        read.count("countersign_sweep_duration_seconds_count", &labels)
    };
    until("a round goes well", PATIENCE, async || {
        rounds("ok").await >= 1.0
    })
    .await;
    // A step of one tenant, then one before all tenants.
    for broken in ["audit_events", "pairing_guesses"] {
        let rename = format!("alter table {broken} rename to {broken}_away");
        cluster.database.run(&rename).await;
        let failed = rounds("failed").await;
        until("the failure is told", PATIENCE, async || {
            rounds("failed").await > failed
        })
        .await;
        let well = rounds("ok").await;
        an_old_prompt(&cluster).await;
        until("what is due is gone", PATIENCE, async || {
            cluster
                .database
                .number("select count(*) from prompts")
                .await
                == 0
        })
        .await;
        let failed = rounds("failed").await;
        until("another round is over", PATIENCE, async || {
            rounds("failed").await > failed
        })
        .await;
        assert!(rounds("ok").await <= well, "none went well");
        let mend = format!("alter table {broken}_away rename to {broken}");
        cluster.database.run(&mend).await;
        until("a round goes well again", PATIENCE, async || {
            rounds("ok").await > well
        })
        .await;
    }
}

/// A prompt that is long past its retention.
async fn an_old_prompt(cluster: &Cluster) {
    let insert = format!(
        "insert into prompts (tenant_id, request_id, submission_id, operation_id, message_id, enforcer_id, form,
                              prompt_hash, status, ack_at, accepted_at)
         select '{}', 'old', id, id, id, 'build-bot', 'sealed', '', 'delivered', at, at
           from (select gen_random_uuid() as id, now() - interval '1000 days' as at) made",
        cluster.tenant
    );
    cluster.database.run(&insert).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_forgets_for_all_and_another_takes_over_when_its_lease_ends() {
    let cluster = Cluster::with(2, |config| config.retention.every_seconds = 1).await;
    // A node that has begun and does not go on.
    let lease = "insert into sweep_leases (sweep, node_id, until)
                 values ('retention', gen_random_uuid(), clock_timestamp() + interval '50 s')
                 on conflict (sweep) do update set node_id = excluded.node_id, until = excluded.until";
    cluster.database.run(lease).await;
    let rounds = async || {
        let mut all = 0.0;
        for node in &cluster.nodes {
            let labels = [("sweep", "retention"), ("outcome", "ok")];
            let read = scrape(&node.metrics).await;
            all += read.count("countersign_sweep_duration_seconds_count", &labels);
        }
        all
    };
    let several = async || {
        let before = rounds().await;
        until("both nodes have looked", PATIENCE, async || {
            rounds().await >= before + 6.0
        })
        .await;
    };
    // Rounds that had begun before are over.
    several().await;
    an_old_prompt(&cluster).await;
    several().await;
    let prompts = "select count(*) from prompts";
    assert_eq!(cluster.database.number(prompts).await, 1);
    cluster
        .database
        .run("update sweep_leases set until = clock_timestamp()")
        .await;
    until("another goes on", PATIENCE, async || {
        cluster.database.number(prompts).await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_many_exchanges_takes_a_small_share_of_the_time() {
    let cluster = Cluster::with(2, |config| config.retention.every_seconds = 1).await;
    // Each statement's beginning and end, by the row that it deletes last.
    cluster
        .database
        .run(
            "create table deletions (at timestamptz not null, began timestamptz not null);
             create function note() returns trigger language plpgsql as
                 $$ begin insert into deletions values (clock_timestamp(), statement_timestamp()); return old; end $$;
             create trigger note after delete on exchanges for each row execute function note();",
        )
        .await;
    fill(&cluster, 1_000, "100 days", "1 hour").await;
    until("they are gone", Duration::from_secs(60), async || {
        cluster
            .database
            .number("select count(*) from exchanges")
            .await
            == 0
    })
    .await;
    let statements = "select count(distinct began) from deletions";
    let statements = cluster.database.number(statements).await;
    assert!(statements >= 10, "{statements} statements");
    // Without the last one, whose pause is not seen.
    let share = "select (100 * extract(epoch from sum(s.took)) / extract(epoch from max(s.began) - min(s.began)))::bigint
                   from (select began, max(at) - began as took from deletions group by began) s
                  where s.began < (select max(began) from deletions)";
    let share = cluster.database.number(share).await;
    println!("{statements} statements took {share} % of the time");
    assert!(share <= 25, "{share} % of the time");
}
