//! Whole exchanges on a node whose database has a history: how rate, latency, log and disk grow with
//! the exchanges that are stored, and with the tenants that they are of. The history is made by SQL,
//! out of one exchange that the node has seen through.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::future::try_join_all;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::time::Instant;

use super::Bench;
use super::exchanges::Pair;
use super::load::{Latencies, WARM_UP, each, saturate, time_id};
use super::nodes::Nodes;
use super::report::Target;
use super::submissions::{Artifact, CONNECTIONS};

/// Stored exchanges, and the tenants that they are of.
const HISTORIES: [(u64, u64); 5] = [
    (10_000, 10),
    (1_000_000, 10),
    (1_000_000, 1_000),
    (1_000_000, 100_000),
    (10_000_000, 10),
];
/// The newest exchanges of a history, which still have their payloads.
const WITH_PAYLOADS: u64 = 1_000_000;
/// Rows of one statement.
const CHUNK: u64 = 100_000;

/// The tables with rows of an exchange, and the columns of each that tell two exchanges apart,
/// beside tenant and request. `$at` is how long ago the exchange was.
const TABLES: [(&str, &[(&str, &str)]); 5] = [
    (
        "exchanges",
        &[
            ("accepted_at", "t.accepted_at - $at"),
            ("decision_message_id", "$id"),
        ],
    ),
    ("exchange_payloads", &[("stored_at", "t.stored_at - $at")]),
    (
        "inbox_items",
        &[("created_at", "t.created_at - $at"), ("message_id", "$id")],
    ),
    (
        "messages",
        &[("created_at", "t.created_at - $at"), ("message_id", "$id")],
    ),
    ("exchange_events", &[("at", "t.at - $at")]),
];

/// Made from the place of an exchange, in the order of time.
const ID: &str =
    "(lpad(to_hex(1600000000000 + i), 12, '0') || '70008000' || lpad(to_hex(i), 12, '0'))::uuid";

/// The statement that adds the rows of a table for the exchanges from $1 until before $2.
async fn statement(
    connection: &mut PgConnection,
    (table, own): (&str, &[(&str, &str)]),
    (count, tenants): (u64, u64),
) -> anyhow::Result<String> {
    let columns: Vec<String> = sqlx::query_scalar(
        "select column_name::text from information_schema.columns where table_name = $1 order by ordinal_position",
    )
    .bind(table)
    .fetch_all(connection)
    .await?;
    let age = format!("interval '80 days' * (1 - i / {count}.0)");
    let value = |column: &String| {
        let own = own.iter().find(|(name, _)| name == column);
        match column.as_str() {
            "tenant_id" => format!("'grown-' || i % {tenants}"),
            "request_id" => format!("{ID}::text"),
            _ => own.map_or_else(
                || format!("t.{column}"),
                |(_, value)| value.replace("$at", &age).replace("$id", ID),
            ),
        }
    };
    let values: Vec<_> = columns.iter().map(value).collect();
    Ok(format!(
        "insert into {table} ({}) select {} from {table} t, generate_series($1, $2) i where t.request_id = $3",
        columns.join(", "),
        values.join(", ")
    ))
}

/// Copies a finished exchange until there are so many.
async fn fill(url: &str, finished: &str, (count, tenants): (u64, u64)) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    let named = "insert into tenants (tenant_id, name) select 'grown-' || k, 'grown' from generate_series(0, $1) k";
    let last = i64::try_from(tenants)? - 1;
    sqlx::query(named)
        .bind(last)
        .execute(&mut connection)
        .await?;
    // At the same time: each table has locks of its own, and PostgreSQL a process for each connection.
    try_join_all(TABLES.map(|table| fill_table(url, finished, table, (count, tenants)))).await?;
    // As it is once the database has had the time for it.
    connection.execute("vacuum analyze").await?;
    connection.execute("checkpoint").await?;
    Ok(())
}

async fn fill_table(
    url: &str,
    finished: &str,
    table: (&str, &[(&str, &str)]),
    (count, tenants): (u64, u64),
) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    connection.execute("set synchronous_commit = off").await?;
    let insert = statement(&mut connection, table, (count, tenants)).await?;
    let mut first = match table.0 {
        "exchange_payloads" => count.saturating_sub(WITH_PAYLOADS),
        _ => 0,
    };
    while first < count {
        let last = (first + CHUNK).min(count) - 1;
        sqlx::query(AssertSqlSafe(insert.as_str()))
            .bind(i64::try_from(first)?)
            .bind(i64::try_from(last)?)
            .bind(finished)
            .execute(&mut connection)
            .await?;
        first = last + 1;
    }
    Ok(())
}

/// The size of the database, and the position in the log, in bytes.
async fn sizes(url: &str) -> anyhow::Result<(f64, f64)> {
    let mut connection = PgConnection::connect(url).await?;
    let read = sqlx::query_as(
        "select pg_database_size(current_database())::float8, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8",
    );
    Ok(read.fetch_one(&mut connection).await?)
}

/// The figures of one history.
struct GrowthFigures {
    /// Exchanges a second.
    rate: f64,
    /// The 99th percentile of an exchange, in milliseconds, with all connections busy.
    slow: f64,
    /// Of log for an exchange, in KiB.
    log: f64,
    /// Of disk for a stored exchange, in KiB.
    disk: f64,
}

async fn grown(bench: &Bench, history: (u64, u64)) -> anyhow::Result<GrowthFigures> {
    let artifact = Artifact::usual()?;
    let nodes = bench.nodes(1).await?;
    let here: &Nodes = &nodes;
    // Nobody answers for channels while the history is made, so they are opened afterwards.
    let finished = Pair::meet(here, 0, &artifact).await?.exchange().await?;
    let (before, _) = sizes(&here.url).await?;
    fill(&here.url, &finished, history).await?;
    let mut pairs = each((1..=CONNECTIONS).map(|turn| Pair::meet(here, turn, &artifact))).await?;
    for pair in &mut pairs {
        pair.ids = time_id;
    }
    let (after, begin) = sizes(&here.url).await?;
    let (all, warm) = (RefCell::new(Vec::new()), Instant::now() + WARM_UP);
    let timed = async |pair: &mut Pair| {
        let begun = Instant::now();
        pair.exchange().await?;
        let taken = begun.elapsed();
        all.borrow_mut().push((begun >= warm, taken));
        Ok(())
    };
    let rate = saturate(&here.url, pairs, bench.seconds, timed).await?;
    let (_, end) = sizes(&here.url).await?;
    nodes.stop().await?;
    let all = all.into_inner();
    let number = f64::from(u32::try_from(all.len())?);
    let warm = all.into_iter().filter(|(is_warm, _)| *is_warm);
    let millis = warm.map(|(_, taken): (_, Duration)| taken.as_secs_f64() * 1_000.0);
    let stored = f64::from(u32::try_from(history.0)?);
    Ok(GrowthFigures {
        rate,
        slow: Latencies::new(millis.collect()).quantile(990),
        log: (end - begin) / number / 1_024.0,
        disk: (after - before) / stored / 1_024.0,
    })
}

/// Each history against the smallest one.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let mut least = None;
    for history in HISTORIES {
        let growth = grown(bench, history).await?;
        let (count, tenants) = history;
        let least = least.get_or_insert((growth.rate, growth.slow, growth.log, growth.disk));
        let name = format!("exchanges beside {count} stored ones of {tenants} tenants");
        let report = &mut bench.report;
        let target = Target::AtLeast(0.8);
        report.add(&name, (growth.rate, "/s"), (least.0, "/s"), target);
        let open = Target::Open;
        report.add(
            "  the 99th percentile",
            (growth.slow, "ms"),
            (least.1, "ms"),
            open,
        );
        report.add(
            "  log of an exchange",
            (growth.log, "KiB"),
            (least.2, "KiB"),
            open,
        );
        report.add(
            "  disk of a stored one",
            (growth.disk, "KiB"),
            (least.3, "KiB"),
            open,
        );
    }
    Ok(())
}
