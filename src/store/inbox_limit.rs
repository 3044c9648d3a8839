//! Finds submissions for an inbox that is at its limit. Inboxes are counted only where they may be near it, so that most
//! submissions do not pay for it. Two nodes that count at once may exceed the limit by a batch.

use std::collections::HashSet;

use sqlx::PgConnection;

use super::rows::column;
use super::submission::SubmissionRow;
use crate::clock::Clock;
use crate::protocol::id::OperationId;

/// Which of these submissions ask an approver who would then have more than `most` pending.
pub(super) async fn over_limit(
    connection: &mut PgConnection,
    clock: &Clock,
    most: i64,
    rows: &[SubmissionRow],
) -> sqlx::Result<HashSet<OperationId>> {
    let asked: Vec<_> = rows
        .iter()
        .flat_map(|row| row.asked.iter().map(move |asked| (row, asked)))
        .collect();
    if !asked.iter().any(|(_, asked)| asked.count) {
        return Ok(HashSet::new());
    }
    let over_limit = sqlx::query_scalar!(
        r#"
        with asked as (
            select tenant_id, submission_id, expires_at, approver_id, counted
              from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::text[], $5::boolean[])
                   as a (tenant_id, submission_id, expires_at, approver_id, counted)
        ),
        load as materialized (
            select d.tenant_id, d.approver_id, n.pending
              from (select distinct a.tenant_id, a.approver_id from asked a where a.counted) d
             cross join lateral (
                 select count(*) as pending
                   from (select 1
                           from inbox_items x
                          where x.tenant_id = d.tenant_id and x.approver_id = d.approver_id
                            and x.closed_at is null and x.removed_at is null
                            and x.expires_at > clock_timestamp() + $6::interval
                          limit $7) counted) n
        )
        select distinct r.submission_id as "operation!: OperationId"
          from (select a.submission_id,
                       l.pending + row_number() over (partition by a.tenant_id, a.approver_id
                                                          order by a.submission_id) as nth
                  from asked a
                  join load l on l.tenant_id = a.tenant_id and l.approver_id = a.approver_id
                 where a.expires_at > clock_timestamp() + $6::interval) r
         where r.nth > $7
        "#,
        column(&asked, |(row, _)| &row.tenant) as _,
        column(&asked, |(row, _)| row.operation) as _,
        column(&asked, |(row, _)| row.submission.expires_at) as _,
        column(&asked, |(_, asked)| &asked.approver) as _,
        &column(&asked, |(_, asked)| asked.count),
        clock.offset(),
        most,
    )
    .fetch_all(connection)
    .await?;
    Ok(over_limit.into_iter().collect())
}
