//! The states of teams: appended, never changed, and served to those who may read them.

use sqlx::postgres::types::PgInterval;

use super::TeamStore;
use super::follow::FollowScope;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::team::{MAX_TEAMS, TEAM_INVITATION_LIFETIME};
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::interval::seconds;
use crate::store::error::Result;

/// Most bytes of states that are read at once, beside the last one of them.
const MAX_PAGE_BYTES: i64 = 1 << 20;

/// Most teams in a list: those that an approver may create, and some hundred that it has joined.
const MAX_LISTED: i64 = 256;

/// Names a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamHeadRow {
    pub seq: i32,
    pub digest: String,
}

/// A team that an approver is in.
#[derive(Debug)]
pub struct TeamRow {
    pub team: String,
    pub name: String,
    pub seq: i32,
    pub digest: String,
    pub owner: bool,
}

/// The newest state, and the digests of all.
#[derive(Debug)]
pub struct TeamChainRow {
    pub signed: String,
    pub digests: Vec<String>,
}

/// Somebody who wants to read about a team: as one id, or as any of its role.
#[derive(Debug, Clone, Copy)]
pub enum TeamReader<'a> {
    Enforcer(Option<&'a EnforcerId>),
    Approver(Option<&'a ApproverId>),
    /// The same; somebody who is invited may read too.
    Invited(Option<&'a ApproverId>),
}

#[derive(Debug)]
pub struct NewState<'a> {
    pub team: &'a str,
    pub seq: i32,
    pub digest: &'a str,
    /// The digest of the state before it, by which it was judged; none for the first.
    pub prev: Option<&'a str>,
    /// The team's name in it.
    pub name: &'a str,
    pub signed: &'a str,
    /// Everyone in it, and on which kind of seat.
    pub people: &'a [String],
    pub seats: &'a [&'static str],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishFact {
    Written,
    /// There is another state with this number.
    Stale,
    NoTenant,
    /// The publisher has created too many teams.
    TooMany,
    /// This person would be new in the team, and has not consented.
    NoConsent(String),
}

pub(super) fn invitation_lifetime() -> PgInterval {
    seconds(TEAM_INVITATION_LIFETIME.as_secs())
}

impl TeamStore {
    /// An invitation counts while its inviter is a member: one who is removed leaves no reader behind.
    pub async fn may_read(
        &self,
        tenant: &TenantId,
        team: &str,
        reader: TeamReader<'_>,
    ) -> Result<bool> {
        let (enforcer, approver) = match reader {
            TeamReader::Enforcer(id) => (Some(id.map(EnforcerId::as_str)), None),
            TeamReader::Approver(id) | TeamReader::Invited(id) => {
                (None, id.map(ApproverId::as_str))
            }
        };
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as team_id, $3::bool as by_enforcer, $4::text as enforcer_id,
                       $5::text as approver_id, $6::bool as also_invited, clock_timestamp() + $7::interval - $8::interval as since
            )
            select case when i.by_enforcer
                        then exists (select from team_pairings p
                                      where p.tenant_id = i.tenant_id and p.team_id = i.team_id
                                        and (i.enforcer_id is null or p.enforcer_id = i.enforcer_id))
                        else exists (select from team_seats s
                                      where s.tenant_id = i.tenant_id and s.team_id = i.team_id
                                        and (i.approver_id is null or s.approver_id = i.approver_id))
                             or (i.also_invited
                                 and exists (select from team_consents c
                                               join team_seats b on b.tenant_id = c.tenant_id and b.team_id = c.team_id
                                                                and b.approver_id = c.invited_by and b.seat <> 'standIn'
                                              where c.tenant_id = i.tenant_id and c.team_id = i.team_id
                                                and c.approver_id = i.approver_id and c.invited_at > i.since))
                   end as "may!"
              from input i
            "#,
            tenant.as_str(),
            team,
            enforcer.is_some(),
            enforcer.flatten(),
            approver,
            matches!(reader, TeamReader::Invited(_)),
            clock_offset(&self.database.clock),
            invitation_lifetime(),
        )
        .map(|row| row.may);
        self.database.pool.fetch_one(tenant, query).await
    }

    /// The newest state's name; `None` if there is no such team.
    pub async fn team_head(&self, tenant: &TenantId, team: &str) -> Result<Option<TeamHeadRow>> {
        let query = sqlx::query_as!(
            TeamHeadRow,
            r#"
            select s.seq, s.digest
              from team_states s
             where s.tenant_id = $1 and s.team_id = $2
             order by s.seq desc
             limit 1
            "#,
            tenant.as_str(),
            team,
        );
        self.database.pool.fetch_optional(tenant, query).await
    }

    pub async fn team_chain(&self, tenant: &TenantId, team: &str) -> Result<Option<TeamChainRow>> {
        let query = sqlx::query_as!(
            TeamChainRow,
            r#"
            select s.signed::text as "signed!",
                   array(select d.digest from team_states d
                          where d.tenant_id = s.tenant_id and d.team_id = s.team_id and d.seq <= s.seq
                          order by d.seq) as "digests!"
              from team_states s
             where s.tenant_id = $1 and s.team_id = $2
             order by s.seq desc
             limit 1
            "#,
            tenant.as_str(),
            team,
        );
        self.database.pool.fetch_optional(tenant, query).await
    }

    /// The states after this one, as they were received, oldest first: as many as fit.
    pub async fn team_states(
        &self,
        tenant: &TenantId,
        team: &str,
        after: i32,
        limit: i64,
    ) -> Result<Vec<String>> {
        let query = sqlx::query!(
            r#"
            select p.signed::text as "signed!"
              from (select s.seq, s.signed,
                           sum(octet_length(s.signed::text)) over (order by s.seq) - octet_length(s.signed::text) as bytes_before
                      from team_states s
                     where s.tenant_id = $1 and s.team_id = $2 and s.seq > $3
                     order by s.seq
                     limit $4) p
             where p.bytes_before < $5::bigint
             order by p.seq
            "#,
            tenant.as_str(),
            team,
            after,
            limit,
            MAX_PAGE_BYTES,
        )
        .map(|row| row.signed);
        self.database.pool.fetch_all(tenant, query).await
    }

    /// The teams that an approver is in: the first ones first, so that no later one takes their place in the list.
    pub async fn teams_of(&self, tenant: &TenantId, approver: &ApproverId) -> Result<Vec<TeamRow>> {
        let query = sqlx::query_as!(
            TeamRow,
            r#"
            select s.team_id as team, h.name, h.seq, h.digest, s.seat = 'owner' as "owner!"
              from team_seats s
             cross join lateral (select t.seq, t.digest, t.name
                                   from team_states t
                                  where t.tenant_id = s.tenant_id and t.team_id = s.team_id
                                  order by t.seq desc
                                  limit 1) h
             where s.tenant_id = $1 and s.approver_id = $2
             order by s.seated_at, s.team_id
             limit $3
            "#,
            tenant.as_str(),
            approver.as_str(),
            MAX_LISTED,
        );
        self.database.pool.fetch_all(tenant, query).await
    }

    /// Writes a state that was judged by the one before it, seats its people, and adjusts the pairings that follow. Somebody who is
    /// new to the team must have consented: the publisher by publishing, anybody else by answering an invitation. People who leave
    /// lose their invitations and consents, so that each consent counts once.
    pub async fn publish_state(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        new: &NewState<'_>,
    ) -> Result<PublishFact> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as team_id, $3::int as seq, $4::text as digest, $5::text as prev,
                       $6::text as name, $7::text::json as signed, $8::text[] as people, $9::text[] as seats,
                       $10::text as publisher, $11::bigint as most, $12::interval as lifetime,
                       clock_timestamp() + $13::interval as at, $14::text::json as origin
            ),
            live_tenant as materialized (
                select t.tenant_id
                  from tenants t
                  join input i on i.tenant_id = t.tenant_id
                 where t.disabled_at is null
                   for share of t
            ),
            next_seats as materialized (
                select i.tenant_id, i.team_id, p.approver_id, p.seat
                  from input i
                 cross join unnest(i.people, i.seats) as p (approver_id, seat)
            ),
            unconsented_seats as materialized (
                select n.approver_id
                  from next_seats n
                 cross join input i
                 where n.approver_id <> i.publisher
                   and not exists (select from team_seats s
                                    where s.tenant_id = n.tenant_id and s.team_id = n.team_id and s.approver_id = n.approver_id)
                   and not exists (select from team_consents c
                                    where c.tenant_id = n.tenant_id and c.team_id = n.team_id and c.approver_id = n.approver_id
                                      and c.signed is not null and c.invited_at > i.at - i.lifetime)
            ),
            state as materialized (
                select exists (select from live_tenant) as tenant,
                       i.prev is not null
                       -- A repeat, which is found to be one.
                       or exists (select from team_states p where p.tenant_id = i.tenant_id and p.team_id = i.team_id)
                       or (select count(*) from team_states c
                            where c.tenant_id = i.tenant_id and c.published_by = i.publisher and c.seq = 0) < i.most as room,
                       (i.prev is null
                        or exists (select from team_states p
                                    where p.tenant_id = i.tenant_id and p.team_id = i.team_id and p.seq = i.seq - 1
                                      and p.digest = i.prev))
                       and not exists (select from team_states k
                                        where k.tenant_id = i.tenant_id and k.team_id = i.team_id and k.seq = i.seq) as is_next,
                       (select min(u.approver_id) from unconsented_seats u) as unconsented
                  from input i
            ),
            inserted_state as (
                insert into team_states (tenant_id, team_id, seq, digest, name, published_by, signed, accepted_at)
                select i.tenant_id, i.team_id, i.seq, i.digest, i.name, i.publisher, i.signed, i.at
                  from input i
                 cross join state s
                 where s.tenant and s.room and s.is_next and s.unconsented is null
                on conflict on constraint team_states_pkey do nothing
                returning tenant_id, team_id, seq, accepted_at
            ),
            deleted_seats as (
                delete from team_seats s using inserted_state w
                 where s.tenant_id = w.tenant_id and s.team_id = w.team_id
                   and s.approver_id <> all ((select i.people from input i)::text[])
                returning s.tenant_id, s.team_id, s.approver_id
            ),
            deleted_consents as (
                delete from team_consents c using deleted_seats d
                 where c.tenant_id = d.tenant_id and c.team_id = d.team_id and c.approver_id = d.approver_id
            ),
            written_seats as (
                insert into team_seats (tenant_id, team_id, approver_id, seat, seated_at)
                select n.tenant_id, n.team_id, n.approver_id, n.seat, w.accepted_at
                  from inserted_state w
                 cross join next_seats n
                on conflict on constraint team_seats_pkey do update set seat = excluded.seat
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from inserted_state w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, w.accepted_at,
                                        case when w.seq = 0 then 'team.created' else 'team.changed' end, w.team_id,
                                        'state ' || w.seq) a
            )
            select s.tenant as "tenant!", s.room as "room!", s.is_next as "is_next!", s.unconsented as "unconsented?",
                   exists (select from inserted_state) as "written!"
              from state s
            "#,
            tenant.as_str(),
            new.team,
            new.seq,
            new.digest,
            new.prev,
            new.name,
            new.signed,
            new.people,
            new.seats as &[&str],
            approver.as_str(),
            i64::try_from(MAX_TEAMS).unwrap_or(i64::MAX),
            invitation_lifetime(),
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        )
        .map(|row| match row {
            row if row.written => PublishFact::Written,
            row if !row.tenant => PublishFact::NoTenant,
            row if !row.room => PublishFact::TooMany,
            row if !row.is_next => PublishFact::Stale,
            row => row
                .unconsented
                .map_or(PublishFact::Stale, PublishFact::NoConsent),
        });
        let scope = |fact: &PublishFact| match fact {
            PublishFact::Written => FollowScope::Team(new.team.to_owned()),
            PublishFact::Stale
            | PublishFact::NoTenant
            | PublishFact::TooMany
            | PublishFact::NoConsent(_) => FollowScope::Nobody,
        };
        let fact = self.database.in_team_turn(tenant, query, scope).await?;
        Ok(fact.unwrap_or(PublishFact::Stale))
    }
}
