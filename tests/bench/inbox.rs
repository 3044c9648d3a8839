//! Reading an inbox: a page out of ten thousand pending, against one out of ten.

use sqlx::{Connection as _, Executor as _, PgConnection};
use std::time::Duration;
use tokio::time::Instant;

use super::Bench;
use super::client::{Connection, request};
use super::load::{Latencies, median};
use super::report::Target;

/// Items of a page.
const PAGE: usize = 10;
/// How many pending there are in the larger inbox.
const MANY: usize = 10_000;

/// Puts pending exchanges into an inbox, acknowledged as by a client that has seen them, straight
/// into the tables.
pub async fn fill(
    connection: &mut PgConnection,
    tenant: &str,
    approver: &str,
    count: usize,
) -> anyhow::Result<()> {
    let body = super::submissions::Artifact::usual()?.body().to_owned();
    let statement = "
        with made as materialized (
            select gen_random_uuid() as id, clock_timestamp() - interval '10 minutes' + n * interval '10 ms' as at
              from generate_series(1, $3::int) as n
        ), exchange as (
            insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                   artifact_type, artifact_hash, accepted_at, expires_at)
            select $1, id::text, id, id, 'pendingApproval', 1, 'filler', 'sealed', 'command.review',
                   repeat('ab', 32), at, at + interval '1 day' from made
        ), payload as (
            insert into exchange_payloads (tenant_id, request_id, part, body)
            select $1, id::text, 'artifact', $4::json from made
        )
        insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at, acked_at)
        select $1, id::text, $2, id, at, at + interval '1 day', at from made";
    sqlx::query(statement)
        .bind(tenant)
        .bind(approver)
        .bind(i32::try_from(count)?)
        .bind(body)
        .execute(connection)
        .await?;
    Ok(())
}

/// Pages of both inboxes, turn by turn.
pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let nodes = bench.nodes(1).await?;
    let mut database = PgConnection::connect(&nodes.url).await?;
    fill(&mut database, &nodes.tenant, "few", PAGE).await?;
    fill(&mut database, &nodes.tenant, "many", MANY).await?;
    database.execute("vacuum analyze").await?;
    let mut connection = Connection::open(nodes.address(0)).await?;
    let page = |approver: &str| {
        let path = format!("/v1/approvers/{approver}/inbox?limit={PAGE}");
        request("GET", &path, &nodes.approver, "")
    };
    let (few, many) = (page("few"), page("many"));
    let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        let end = Instant::now() + Duration::from_secs(bench.seconds.min(4));
        let (mut short, mut long) = (Vec::new(), Vec::new());
        while Instant::now() < end {
            for (page, taken) in [(&few, &mut short), (&many, &mut long)] {
                let begun = Instant::now();
                connection.call(page, 200).await?;
                taken.push(begun.elapsed().as_secs_f64() * 1_000.0);
            }
        }
        of_few.push(Latencies::new(short).quantile(500));
        of_many.push(Latencies::new(long).quantile(500));
    }
    bench.report.add(
        "an inbox page with 10,000 pending, against 10, p50",
        (median(of_many), "ms"),
        (median(of_few), "ms"),
        Target::AtMost(1.5),
    );
    nodes.stop().await
}
