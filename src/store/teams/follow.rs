//! Keeps the pairings of people in step with the teams that their enforcers are paired with. A new state, a pairing with a team and the
//! end of a pairing take one lock of their tenant first: of two, the second sees the first. A direct pairing is completed without it:
//! that makes its own row a direct one, and the statement below leaves such a row alone, whichever of the two locks the row first.

use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection};

use crate::protocol::id::TenantId;
use crate::store::Database;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::pool::RowQuery;
use crate::store::error::Result;

/// Whose pairings may have changed.
#[derive(Debug, Clone)]
pub(in crate::store) enum FollowScope {
    Nobody,
    /// The enforcers of a team.
    Team(String),
    Enforcer(String),
}

impl Database {
    /// Runs one statement about teams or pairings while no other one of the tenant runs, and then adjusts the pairings that
    /// follow. The lock is taken by a statement of its own: the snapshots of the others must be newer than the lock.
    pub(in crate::store) async fn in_team_turn<T: Send + Unpin>(
        &self,
        tenant: &TenantId,
        query: RowQuery<'_, impl FnMut(PgRow) -> sqlx::Result<T> + Send>,
        scope: impl FnOnce(&T) -> FollowScope + Send,
    ) -> Result<Option<T>> {
        let mut lease = self.pool.lease(tenant).await?;
        let connection = lease.connection()?;
        let statements = async {
            let mut transaction = connection.begin().await?;
            // An approver's lock has an id after one line feed, so none is this one.
            sqlx::query!(
                "select pg_advisory_xact_lock(hashtextextended($1 || chr(10) || chr(10) || 'teams', 0))",
                tenant.as_str(),
            )
            .execute(&mut *transaction)
            .await?;
            let found = query.fetch_optional(&mut *transaction).await?;
            match found.as_ref().map_or(FollowScope::Nobody, scope) {
                FollowScope::Nobody => {}
                FollowScope::Team(team) => {
                    self.follow(&mut transaction, tenant, Some(&team), None)
                        .await?;
                }
                FollowScope::Enforcer(enforcer) => {
                    self.follow(&mut transaction, tenant, None, Some(&enforcer))
                        .await?;
                }
            }
            transaction.commit().await?;
            Ok(found)
        };
        let found = self.pool.within(statements).await;
        Ok(lease.settle_transaction(found)?)
    }

    /// Direct pairings stay as they are. Each other row has a nonce of its own, since lists continue after one.
    async fn follow(
        &self,
        connection: &mut PgConnection,
        tenant: &TenantId,
        team: Option<&str>,
        enforcer: Option<&str>,
    ) -> sqlx::Result<()> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as team_id, $3::text as enforcer_id, clock_timestamp() + $4::interval as at
            ),
            concerned_enforcers as materialized (
                select i.tenant_id, i.enforcer_id, i.at
                  from input i
                 where i.enforcer_id is not null
                 union all
                select i.tenant_id, t.enforcer_id, i.at
                  from input i
                  join team_pairings t on t.tenant_id = i.tenant_id and t.team_id = i.team_id
            ),
            due_pairings as materialized (
                select distinct on (t.enforcer_id, s.approver_id)
                       c.tenant_id, t.enforcer_id, s.approver_id, t.team_id, t.enforcer_label, t.workspace_name, t.enforcer_key, c.at,
                       translate(encode(sha256(convert_to(t.nonce || chr(10) || s.approver_id, 'UTF8')), 'base64'), '+/=', '-_')
                           as nonce
                  from concerned_enforcers c
                  join team_pairings t on t.tenant_id = c.tenant_id and t.enforcer_id = c.enforcer_id
                  join team_seats s on s.tenant_id = t.tenant_id and s.team_id = t.team_id
                 order by t.enforcer_id, s.approver_id, t.team_id
            ),
            written_pairings as (
                insert into pairings (tenant_id, enforcer_id, approver_id, team_id, nonce, token_hash, enforcer_label, workspace_name,
                                      enforcer_key, paired_at)
                select d.tenant_id, d.enforcer_id, d.approver_id, d.team_id, d.nonce, '\x', d.enforcer_label, d.workspace_name,
                       d.enforcer_key, d.at
                  from due_pairings d
                on conflict on constraint pairings_pkey do update
                   set team_id = excluded.team_id, nonce = excluded.nonce, token_hash = excluded.token_hash,
                       enforcer_label = excluded.enforcer_label, workspace_name = excluded.workspace_name,
                       enforcer_key = excluded.enforcer_key, approver_key = null, paired_at = excluded.paired_at, revoked_at = null
                 where pairings.revoked_at is not null
                    or (pairings.team_id is not null and pairings.nonce <> excluded.nonce)
            )
            update pairings p
               set revoked_at = c.at
              from concerned_enforcers c
             where p.tenant_id = c.tenant_id and p.enforcer_id = c.enforcer_id and p.team_id is not null and p.revoked_at is null
               and not exists (select from due_pairings d
                                where d.enforcer_id = p.enforcer_id and d.approver_id = p.approver_id)
            "#,
            tenant.as_str(),
            team,
            enforcer,
            clock_offset(&self.clock),
        );
        query.execute(connection).await.map(drop)
    }
}
