//! Whose inbox is too full for what it is asked. Counted only where it may be: the statement that takes submissions would
//! otherwise pay for it every time. Two nodes that count at once may both find room, and go past the limit by a batch.

use std::collections::HashSet;

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::rows;
use super::submit::SubmissionRow;
use crate::clock::Clock;
use crate::protocol::id::OperationId;

/// Which of these submissions ask someone who would then have more than `most` pending.
pub(super) async fn crowded(
    connection: &mut PgConnection,
    clock: &Clock,
    most: i64,
    rows: &[SubmissionRow],
) -> Result<HashSet<OperationId>, sqlx::Error> {
    let asked: Vec<_> = rows
        .iter()
        .flat_map(|row| row.asked.iter().map(move |asked| (row, asked)))
        .collect();
    if !asked.iter().any(|(_, asked)| asked.count) {
        return Ok(HashSet::new());
    }
    let crowded = sqlx::query_scalar!(
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
        select distinct r.submission_id as "submission_id!"
          from (select a.submission_id,
                       l.pending + row_number() over (partition by a.tenant_id, a.approver_id
                                                          order by a.submission_id) as nth
                  from asked a
                  join load l on l.tenant_id = a.tenant_id and l.approver_id = a.approver_id
                 where a.expires_at > clock_timestamp() + $6::interval) r
         where r.nth > $7
        "#,
        &rows::texts(&asked, |(row, _)| row.tenant.as_str()) as _,
        &asked
            .iter()
            .map(|(row, _)| row.operation.0)
            .collect::<Vec<Uuid>>(),
        &asked
            .iter()
            .map(|(row, _)| row.submission.expires_at.inner())
            .collect::<Vec<OffsetDateTime>>(),
        &rows::texts(&asked, |(_, asked)| asked.approver.as_str()) as _,
        &asked
            .iter()
            .map(|(_, asked)| asked.count)
            .collect::<Vec<bool>>(),
        clock.offset(),
        most,
    )
    .fetch_all(connection)
    .await?;
    Ok(crowded.into_iter().map(OperationId).collect())
}
