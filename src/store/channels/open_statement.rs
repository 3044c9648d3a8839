//! Registers channels, many in one statement.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::protocol::presence::Transport;
use crate::protocol::wake_key::WakeKey;
use crate::store::channels::terms::owner;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub struct OpenRow {
    pub key: WakeKey,
    pub channel: Uuid,
    pub transport: Transport,
    /// How long ago it was opened.
    pub age: Duration,
    /// Whether its peer responds.
    pub active: bool,
}

pub struct OpenChannels {
    pub instance: Uuid,
}

impl BatchStatement for OpenChannels {
    const NAME: &'static str = "open_channel";
    type Row = OpenRow;
    type Fact = ();

    fn tenant_scope(rows: &[OpenRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| row.key.tenant()))
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let owners: Vec<_> = rows.iter().filter_map(|row| owner(&row.key)).collect();
        // A retried batch finds its own rows.
        sqlx::query!(
            r#"
            insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at, active)
            select i.tenant_id, i.kind, i.identity, i.channel_id, $1, i.transport,
                   clock_timestamp() - make_interval(secs => i.age), i.active
              from unnest($2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::float8[], $8::boolean[])
                   as i (tenant_id, kind, identity, channel_id, transport, age, active)
             order by i.tenant_id collate "C", i.kind collate "C", i.identity collate "C", i.channel_id
            on conflict on constraint channels_pkey do nothing
            "#,
            self.instance,
            column(&owners, |(tenant, _, _)| *tenant) as _,
            column(&owners, |(_, kind, _)| *kind) as _,
            column(&owners, |(_, _, identity)| *identity) as _,
            &column(rows, |row| row.channel),
            column(rows, |row| row.transport) as _,
            &column(rows, |row| row.age.as_secs_f64()),
            &column(rows, |row| row.active),
        )
        .execute(connection)
        .await?;
        Ok(vec![(); rows.len()])
    }
}
