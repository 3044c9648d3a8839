//! Writes what enforcers' clients say of themselves, many in one statement. It waits for no lock.

use sqlx::PgConnection;

use crate::clock::Clock;
use crate::protocol::id::{EnforcerId, TenantId};
use crate::protocol::presence::ClientHello;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::busy::RowLock;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub struct HelloRow {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub hello: ClientHello,
}

pub struct TakeHellos {
    pub clock: Clock,
}

impl BatchStatement for TakeHellos {
    const NAME: &'static str = "hello";
    type Row = HelloRow;
    type Fact = RowLock<()>;

    fn tenant_scope(rows: &[HelloRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &HelloRow) -> Vec<String> {
        vec![format!("{}\n{}", row.tenant, row.enforcer)]
    }

    fn bytes(row: &HelloRow) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        256 + text(&row.hello.label) + text(&row.hello.workspace_name)
    }

    fn is_busy(fact: &Self::Fact) -> bool {
        fact.is_busy()
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let capabilities: Vec<Option<String>> = rows
            .iter()
            .map(|row| {
                let capabilities = row.hello.capabilities.as_ref();
                capabilities.map(serde_json::to_string).transpose()
            })
            .collect::<Result<_, _>>()
            .map_err(|error| sqlx::Error::Encode(error.into()))?;
        let taken = sqlx::query!(
            r#"
            with input as materialized (
                select i.tenant_id, i.enforcer_id, i.label, i.workspace_name, i.capabilities::json as capabilities,
                       clock_timestamp() + $1::interval as at, i.n
                  from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
                       with ordinality as i (tenant_id, enforcer_id, label, workspace_name, capabilities, n)
            ),
            locked as materialized (
                select i.n
                  from enforcers e
                  join input i on i.tenant_id = e.tenant_id and i.enforcer_id = e.enforcer_id
                   for no key update of e skip locked
            ),
            updated as (
                update enforcers e
                   set label = i.label, workspace_name = i.workspace_name, capabilities = i.capabilities,
                       seen_at = greatest(e.seen_at, i.at)
                  from locked l
                  join input i on i.n = l.n
                 where e.tenant_id = i.tenant_id and e.enforcer_id = i.enforcer_id
            ),
            inserted as (
                insert into enforcers (tenant_id, enforcer_id, label, workspace_name, capabilities, transport, seen_at)
                select i.tenant_id, i.enforcer_id, i.label, i.workspace_name, i.capabilities, 'websocket', i.at
                  from input i
                 where (select true from enforcers e
                         where e.tenant_id = i.tenant_id and e.enforcer_id = i.enforcer_id limit 1) is null
                 order by i.tenant_id collate "C", i.enforcer_id collate "C"
                on conflict on constraint enforcers_pkey do nothing
                returning tenant_id, enforcer_id
            )
            select i.n as "n!",
                   exists (select from locked l where l.n = i.n)
                   or exists (select from inserted x
                               where x.tenant_id = i.tenant_id and x.enforcer_id = i.enforcer_id) as "taken!"
              from input i
             order by i.n
            "#,
            clock_offset(&self.clock),
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.enforcer) as _,
            column(rows, |row| row.hello.label.as_deref()) as _,
            column(rows, |row| row.hello.workspace_name.as_deref()) as _,
            capabilities as _,
        )
        .fetch_all(connection)
        .await?;
        let facts = taken.into_iter().map(|row| RowLock::unless(!row.taken, ()));
        Ok(facts.collect())
    }
}
