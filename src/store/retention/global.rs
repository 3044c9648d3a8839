//! Statements that delete expired rows of all tenants.

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::postgres::types::PgInterval;
use sqlx::query::Query;

use super::rules::{BATCH, GlobalRule, RetentionPeriods};
use crate::protocol::team::TEAM_INVITATION_LIFETIME;
use crate::store::database::interval::seconds;
use crate::store::pairing::code::WINDOW_SECONDS;

/// Deletes at most `BATCH` rows, the oldest first.
pub(super) fn statement(
    rule: GlobalRule,
    clock: PgInterval,
    periods: &RetentionPeriods,
) -> Query<'static, Postgres, PgArguments> {
    match rule {
        GlobalRule::IdempotencyKeys => sqlx::query!(
            r#"
            with found as materialized (
                select k.tenant_id, k.principal, k.key
                  from idempotency_keys k
                 where k.expires_at <= (select clock_timestamp() + $1::interval)
                 order by k.expires_at
                 limit $2
                   for update of k skip locked
            ),
            to_delete as materialized (
                select d.tenant_id, d.principal, d.key
                  from unnest(array(select tenant_id from found), array(select principal from found),
                              array(select key from found))
                       as d (tenant_id, principal, key)
            )
            delete from idempotency_keys k using to_delete d
             where k.tenant_id = d.tenant_id and k.principal = d.principal and k.key = d.key
            "#,
            clock,
            BATCH,
        ),
        GlobalRule::PairingSessions => sqlx::query!(
            r#"
            with found as materialized (
                select s.tenant_id, s.nonce
                  from pairing_sessions s
                 where s.expires_at <= (select clock_timestamp() + $1::interval - $2::interval)
                 order by s.expires_at
                 limit $3
                   for update of s skip locked
            ),
            to_delete as materialized (
                select d.tenant_id, d.nonce
                  from unnest(array(select tenant_id from found), array(select nonce from found))
                       as d (tenant_id, nonce)
            )
            delete from pairing_sessions s using to_delete d
             where s.tenant_id = d.tenant_id and s.nonce = d.nonce
            "#,
            clock,
            periods.pairing_sessions,
            BATCH,
        ),
        GlobalRule::PairingGuesses => sqlx::query!(
            r#"
            with found as materialized (
                select g.tenant_id, g.principal
                  from pairing_guesses g
                 where g.started_at <= (select clock_timestamp() + $1::interval - $2::interval)
                 limit $3
                   for update of g skip locked
            ),
            to_delete as materialized (
                select d.tenant_id, d.principal
                  from unnest(array(select tenant_id from found), array(select principal from found))
                       as d (tenant_id, principal)
            )
            delete from pairing_guesses g using to_delete d
             where g.tenant_id = d.tenant_id and g.principal = d.principal
            "#,
            clock,
            seconds(WINDOW_SECONDS),
            BATCH,
        ),
        GlobalRule::Nonces => sqlx::query!(
            r#"
            with found as materialized (
                select n.tenant_id, n.approver_id, n.signer_key_id, n.nonce
                  from decision_nonces n
                 where n.used_at < (select clock_timestamp() + $1::interval - $2::interval)
                 order by n.used_at
                 limit $3
            ),
            to_delete as materialized (
                select d.tenant_id, d.approver_id, d.signer_key_id, d.nonce
                  from unnest(array(select tenant_id from found), array(select approver_id from found),
                              array(select signer_key_id from found), array(select nonce from found))
                       as d (tenant_id, approver_id, signer_key_id, nonce)
            )
            delete from decision_nonces n using to_delete d
             where n.tenant_id = d.tenant_id and n.approver_id = d.approver_id and n.signer_key_id = d.signer_key_id
               and n.nonce = d.nonce
            "#,
            clock,
            periods.nonces,
            BATCH,
        ),
        GlobalRule::AskedApprovers => sqlx::query!(
            r#"
            with found as materialized (
                select k.tenant_id, k.approver_id, k.enforcer_id
                  from asked_approvers k
                 where k.asked_at < (select clock_timestamp() + $1::interval - $2::interval)
                 order by k.asked_at
                 limit $3
                   for update of k skip locked
            ),
            to_delete as materialized (
                select d.tenant_id, d.approver_id, d.enforcer_id
                  from unnest(array(select tenant_id from found), array(select approver_id from found),
                              array(select enforcer_id from found))
                       as d (tenant_id, approver_id, enforcer_id)
            )
            delete from asked_approvers k using to_delete d
             where k.tenant_id = d.tenant_id and k.approver_id = d.approver_id and k.enforcer_id = d.enforcer_id
            "#,
            clock,
            periods.exchanges,
            BATCH,
        ),
        GlobalRule::Revocations => sqlx::query!(
            r#"
            with found as materialized (
                select r.tenant_id, r.kind, r.name
                  from token_revocations r
                 where r.changed_at < (select clock_timestamp() + $1::interval - $2::interval)
                 order by r.changed_at
                 limit $3
                   for update of r skip locked
            )
            delete from token_revocations r using found d
             where r.tenant_id = d.tenant_id and r.kind = d.kind and r.name = d.name
            "#,
            clock,
            periods.revocations,
            BATCH,
        ),
        GlobalRule::Invitations => sqlx::query!(
            r#"
            with found as materialized (
                select i.tenant_id, i.invitation_id
                  from invitations i
                 where i.expires_at < (select clock_timestamp() + $1::interval - $2::interval)
                 order by i.expires_at
                 limit $3
                   for update of i skip locked
            )
            delete from invitations i using found d
             where i.tenant_id = d.tenant_id and i.invitation_id = d.invitation_id
            "#,
            clock,
            periods.invitations,
            BATCH,
        ),
        GlobalRule::TeamConsents => sqlx::query!(
            r#"
            with found as materialized (
                select c.tenant_id, c.team_id, c.invite_id
                  from team_consents c
                 where c.invited_at < (select clock_timestamp() + $1::interval - $2::interval)
                 order by c.invited_at
                 limit $3
                   for update of c skip locked
            )
            delete from team_consents c using found d
             where c.tenant_id = d.tenant_id and c.team_id = d.team_id and c.invite_id = d.invite_id
            "#,
            clock,
            seconds(TEAM_INVITATION_LIFETIME.as_secs()),
            BATCH,
        ),
    }
}
