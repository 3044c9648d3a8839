-- Who decided, with what, and that it counts once.
--
-- First, while no table that is in use is locked: what takes long.

-- A nonce counts once per signing key: written by the statement that decides, forgotten after retention.nonce_seconds. One of
-- more than 64 bytes stands here as its hash, so that every key fits into an index.
create table decision_nonces (
    tenant_id     text collate "C" not null,
    approver_id   text collate "C" not null,
    signer_key_id text collate "C" not null,
    nonce         text collate "C" not null,
    used_at       timestamptz not null
);
-- What was decided before this rule existed is not to be replayed either.
insert into decision_nonces (tenant_id, approver_id, signer_key_id, nonce, used_at)
select e.tenant_id, e.decided_by, e.signer_key_id,
       case when octet_length(e.nonce) <= 64 then e.nonce
            else 'sha256:' || encode(sha256(convert_to(e.nonce, 'UTF8')), 'hex') end as counted,
       max(e.decided_at)
  from exchanges e
 where e.decided_by is not null and e.signer_key_id is not null and e.nonce is not null
 group by e.tenant_id, e.decided_by, e.signer_key_id, counted;
-- Forgetting looks across tenants.
create index decision_nonces_due on decision_nonces (used_at);
alter table decision_nonces
    add constraint decision_nonces_pkey primary key (tenant_id, approver_id, signer_key_id, nonce);
alter table decision_nonces set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
                                 autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000);
alter table decision_nonces enable row level security;
create policy tenant_reach on decision_nonces using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

-- Which enforcer has asked which approver, whose keys it may then read. The time is renewed once a day; forgotten with the
-- exchanges.
create table asked_approvers (
    tenant_id   text collate "C" not null,
    approver_id text collate "C" not null,
    enforcer_id text collate "C" not null,
    asked_at    timestamptz not null
);
create index asked_approvers_due on asked_approvers (asked_at);
alter table asked_approvers add constraint asked_approvers_pkey primary key (tenant_id, approver_id, enforcer_id);
alter table asked_approvers enable row level security;
create policy tenant_reach on asked_approvers using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

-- For how long history and audit are kept at least, whatever a node asks for. Set by deploy/roles.sql; the nodes' role may
-- only read it. Counted in seconds, as nodes count: a month has 30 days, a year 365.25.
create table retention_floors (
    history text collate "C" not null,
    keep    interval not null,
    constraint retention_floors_pkey primary key (history)
);

-- History and audit are forgotten by these functions alone, with the rights of their owner. The nodes' role may add rows and
-- call these, and has no other way to remove one. The clock is the server's own: a node might say any time.
create function forget_audit_events(of_tenant text, older_than timestamptz, most bigint) returns bigint
    language sql volatile security definer
    as $$
    with found as materialized (
        select a.at, a.event_id
          from audit_events a
         where a.tenant_id = of_tenant
           and a.at < (select least(older_than, (select clock_timestamp() - make_interval(secs => extract(epoch from f.keep))
                                                   from retention_floors f
                                                  where f.history = 'audit_events')))
         order by a.at, a.event_id
         limit most
    ),
    to_delete as materialized (
        select d.at, d.event_id
          from unnest(array(select at from found), array(select event_id from found)) as d (at, event_id)
    ),
    gone as (
        delete from audit_events a using to_delete d
         where a.tenant_id = of_tenant and a.at = d.at and a.event_id = d.event_id
        returning a.event_id
    )
    select count(*) from gone
    $$;

create function forget_exchange_events(of_tenant text, requests text[]) returns bigint
    language sql volatile security definer
    as $$
    with gone as (
        delete from exchange_events v
         using unnest(requests) as r (request_id)
         where v.tenant_id = of_tenant and v.request_id = r.request_id
           and v.at < (select least('infinity', (select clock_timestamp() - make_interval(secs => extract(epoch from f.keep))
                                                   from retention_floors f
                                                  where f.history = 'exchange_events')))
        returning v.event_id
    )
    select count(*) from gone
    $$;

-- Who may call them, and keep what: nobody has more rights between this migration and the next run of deploy/roles.sql.
revoke all on retention_floors from public;
do $$
declare
    named text;
    other record;
begin
    -- Until then default privileges let the nodes' role write to every new table.
    for other in
        select distinct a.grantee::regrole as role
          from pg_class c
         cross join aclexplode(c.relacl) a
         where c.oid = 'retention_floors'::regclass and a.grantee <> c.relowner
    loop
        execute format('revoke all on retention_floors from %s', other.role);
        execute format('grant select on retention_floors to %s', other.role);
    end loop;
    foreach named in array array['forget_audit_events(text, timestamptz, bigint)', 'forget_exchange_events(text, text[])'] loop
        -- Whoever calls them must not be able to put tables of its own in the place of these.
        execute format('alter function %s set search_path = %I, pg_temp', named, current_schema());
        execute format('revoke all on function %s from public', named);
        -- Who could delete before: nodes of the new version forget by these functions alone.
        for other in
            select distinct a.grantee::regrole as role
              from pg_class c
             cross join aclexplode(c.relacl) a
             where c.oid = 'audit_events'::regclass and a.privilege_type = 'DELETE' and a.grantee not in (0, c.relowner)
        loop
            execute format('grant execute on function %s to %s', named, other.role);
        end loop;
    end loop;
    -- The defaults of deploy/roles.sql, where others than the owner write history. Nodes that own the tables can delete
    -- whatever they like, so nothing is kept for longer than they are configured to.
    insert into retention_floors (history, keep)
    select f.history, f.keep
      from (values ('exchange_events', interval '90 days'), ('audit_events', interval '400 days')) as f (history, keep)
     where exists (select from pg_class c
                    cross join aclexplode(c.relacl) a
                    where c.oid = 'audit_events'::regclass and a.privilege_type = 'INSERT' and a.grantee <> c.relowner);
end
$$;

-- Labels no longer contain control characters, separators of lines or bidirectional controls; older ones lose theirs.
update pairings
   set enforcer_label = regexp_replace(enforcer_label, '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]', '', 'g'),
       workspace_name = regexp_replace(workspace_name, '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]', '', 'g')
 where enforcer_label ~ '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]'
    or workspace_name ~ '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]';
update enforcers
   set label = regexp_replace(label, '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]', '', 'g'),
       workspace_name = regexp_replace(workspace_name, '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]', '', 'g')
 where label ~ '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]'
    or workspace_name ~ '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]';

-- Tokens that others issued and that a tenant no longer accepts: one by its id, or all of a subject or of the tenant that were
-- issued before a time.
create table token_revocations (
    tenant_id     text collate "C" not null,
    kind          text not null,
    -- The token's id or the subject; empty for all.
    name          text collate "C" not null,
    issued_before timestamptz,
    revoked_at    timestamptz not null,
    changed_at    timestamptz not null default clock_timestamp(),
    constraint token_revocations_pkey primary key (tenant_id, kind, name),
    constraint token_revocations_kind check (kind in ('token', 'subject', 'all')),
    constraint token_revocations_time check ((kind = 'token') = (issued_before is null))
);

-- Nodes ask what changed, and retention what is old, across tenants.
create index token_revocations_changed on token_revocations (changed_at);

alter table token_revocations enable row level security;
create policy tenant_reach on token_revocations using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

-- From here on tables in use are locked: for as long as it takes to add a column without a value.

-- The nonce of the proof that a key's holder registered it; none for a key that an administrator imported. It counts once.
alter table signing_keys add column proof_nonce text collate "C";
create unique index signing_keys_proof_nonce on signing_keys (tenant_id, approver_id, proof_nonce)
    where proof_nonce is not null;

-- Who sent an item, so that one enforcer's share of an inbox can be counted. Null in rows that older versions wrote.
alter table inbox_items add column enforcer_id text collate "C";

-- Client certificates: a credential waits for its certificate, which the holder binds with a one-time code over a connection
-- that presents it.
alter table credentials
    -- SHA-256 of the code.
    add column code_hash       bytea,
    -- None once the code was used.
    add column code_expires_at timestamptz,
    -- When the holder proved to have the certificate; none where a thumbprint was taken on trust, as before this migration.
    add column bound_at        timestamptz,
    drop constraint credentials_kind,
    add constraint credentials_kind check (
        (kind = 'apiKey' and secret_hash is not null and thumbprint is null)
        or (kind = 'certificate' and secret_hash is null)
    );

-- With which credential, and from where. Events of earlier versions do not say.
alter table exchange_events add column principal text, add column address text;
-- What an action was about, where its subject does not say: the role of a credential and the id it is bound to.
alter table audit_events add column detail text;

-- How far the gateway vouches for a decision's signature. Decisions of earlier versions say only whether it verified.
-- The words are added to the domain after the column, and not validated: a column of a domain with a constraint rewrites the
-- table, and validating locks out its writers. In every row that exists the column is null.
create domain verification as text collate "C";
alter table exchanges add column verification verification;
alter domain verification add constraint verification_check check (value in ('registered', 'none', 'off')) not valid;

-- As before, and more columns.
create or replace view exchange_history with (security_invoker = true) as
select e.tenant_id,
       e.request_id,
       case when e.state = 'pendingApproval' and e.expires_at <= clock_timestamp() then 'expired' else e.state end as state,
       e.enforcer_id,
       (select array_agg(i.approver_id order by i.approver_id)
          from inbox_items i
         where i.tenant_id = e.tenant_id and i.request_id = e.request_id) as approver_ids,
       e.artifact_type,
       e.artifact_hash,
       e.accepted_at,
       e.expires_at,
       e.decided_at,
       e.decision::text as decision,
       e.decided_by,
       e.signer_key_id,
       e.verified,
       e.delivered_at,
       case when e.state = 'pendingApproval' and e.expires_at <= clock_timestamp() then e.expires_at else e.ended_at end
           as ended_at,
       e.decided_at - e.accepted_at as time_to_decision,
       (select array_agg(i.approver_id order by i.approver_id)
          from inbox_items i
         where i.tenant_id = e.tenant_id and i.request_id = e.request_id and i.acked_at is not null) as seen_by,
       e.end_reason,
       case when e.decided_at is null then null
            else coalesce(e.verification::text, case when e.verified then 'registered' else 'none' end) end as verification,
       (select v.principal from exchange_events v
         where v.tenant_id = e.tenant_id and v.request_id = e.request_id and v.from_state is null
         limit 1) as submitted_principal,
       (select v.address from exchange_events v
         where v.tenant_id = e.tenant_id and v.request_id = e.request_id and v.from_state is null
         limit 1) as submitted_address,
       (select v.principal from exchange_events v
         where v.tenant_id = e.tenant_id and v.request_id = e.request_id and v.to_state = 'decided'
         limit 1) as decided_principal,
       (select v.address from exchange_events v
         where v.tenant_id = e.tenant_id and v.request_id = e.request_id and v.to_state = 'decided'
         limit 1) as decided_address,
       (select v.principal from exchange_events v
         where v.tenant_id = e.tenant_id and v.request_id = e.request_id
           and v.to_state in ('delivered', 'withdrawn', 'cancelled')
         limit 1) as ended_principal,
       (select v.address from exchange_events v
         where v.tenant_id = e.tenant_id and v.request_id = e.request_id
           and v.to_state in ('delivered', 'withdrawn', 'cancelled')
         limit 1) as ended_address
  from exchanges e;

create or replace view decision_latency with (security_invoker = true) as
select e.tenant_id,
       e.request_id,
       e.enforcer_id,
       e.artifact_type,
       e.decided_by,
       e.decision::text as decision,
       e.accepted_at,
       i.acked_at as seen_at,
       e.decided_at,
       e.delivered_at,
       e.decided_at - e.accepted_at as time_to_decision,
       extract(epoch from e.decided_at - e.accepted_at)::double precision as decision_seconds,
       e.delivered_at - e.decided_at as time_to_delivery,
       extract(epoch from e.delivered_at - e.decided_at)::double precision as delivery_seconds,
       (select v.principal from exchange_events v
         where v.tenant_id = e.tenant_id and v.request_id = e.request_id and v.to_state = 'decided'
         limit 1) as decided_principal,
       (select v.address from exchange_events v
         where v.tenant_id = e.tenant_id and v.request_id = e.request_id and v.to_state = 'decided'
         limit 1) as decided_address
  from exchanges e
  left join inbox_items i
    on i.tenant_id = e.tenant_id and i.request_id = e.request_id and i.approver_id = e.decided_by
 where e.decided_at is not null;

create or replace view pending_inbox with (security_invoker = true) as
select i.tenant_id,
       i.approver_id,
       i.request_id,
       e.enforcer_id,
       e.artifact_type,
       e.accepted_at,
       e.expires_at,
       i.acked_at,
       (select v.principal from exchange_events v
         where v.tenant_id = i.tenant_id and v.request_id = i.request_id and v.from_state is null
         limit 1) as submitted_principal,
       (select v.address from exchange_events v
         where v.tenant_id = i.tenant_id and v.request_id = i.request_id and v.from_state is null
         limit 1) as submitted_address
  from inbox_items i
  join exchanges e on e.tenant_id = i.tenant_id and e.request_id = i.request_id
 where i.closed_at is null and i.removed_at is null and i.expires_at > clock_timestamp();

-- docs/history.md says the same.
comment on column exchange_history.verification is 'how far the gateway vouches for that signature: registered, none (the approver had no key) or off';
comment on column exchange_history.submitted_principal is 'the credential it was submitted with, or the token''s subject and issuer';
comment on column exchange_history.submitted_address is 'where it was submitted from';
comment on column exchange_history.decided_principal is 'the credential the decision was sent with, or the token''s subject and issuer';
comment on column exchange_history.decided_address is 'where the decision was sent from';
comment on column exchange_history.ended_principal is 'the credential it was acknowledged, withdrawn or cancelled with; null if it expired';
comment on column exchange_history.ended_address is 'where that was sent from';
comment on column decision_latency.decided_principal is 'the credential the decision was sent with, or the token''s subject and issuer';
comment on column decision_latency.decided_address is 'where the decision was sent from';
comment on column pending_inbox.submitted_principal is 'the credential it was submitted with, or the token''s subject and issuer';
comment on column pending_inbox.submitted_address is 'where it was submitted from';
comment on column exchange_events.principal is 'the credential it was done with, or the token''s subject and issuer; null for the gateway itself';
comment on column exchange_events.address is 'where the call came from; null for the gateway itself';
comment on column audit_events.detail is 'what more there is to say, such as the role of a new credential and the id it is bound to';
