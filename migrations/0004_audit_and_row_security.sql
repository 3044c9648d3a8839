-- The audit: who did what to tenants, credentials, keys, pairings and pending exchanges. And a second wall between tenants.

-- Append-only: a row per action that took effect, written by the statement that took it. Never a secret, code or token.
create table audit_events (
    tenant_id text collate "C" not null,
    at        timestamptz not null,
    event_id  uuid not null,
    actor     text not null,
    -- The credential that was used; null for the operator's key and the command line.
    principal text,
    action    text not null,
    subject   text not null,
    address   text,
    node      text not null,
    -- More about the action, where its subject does not say: the role of a credential and the id it is bound to.
    detail    text,
    constraint audit_events_pkey primary key (tenant_id, at, event_id)
);

-- The event of an action, for the statement that acts to insert. `origin` has the members event_id, actor, principal, address
-- and node. A plain expression, so that the planner inlines it.
create function audit_event(origin json, tenant_id text, at timestamptz, action text, subject text,
                            detail text default null) returns setof audit_events
    language sql immutable rows 1
    as $$
    select tenant_id, at, (origin ->> 'event_id')::uuid, origin ->> 'actor', origin ->> 'principal', action, subject,
           origin ->> 'address', origin ->> 'node', detail
    $$;

-- For how long history and audit are kept at least, whatever a node asks for. Set by deploy/roles.sql; the nodes' role may
-- only read it. Counted in seconds, as nodes count: a month has 30 days, a year 365.25.
create table retention_floors (
    history text collate "C" not null,
    keep    interval not null,
    constraint retention_floors_pkey primary key (history)
);

-- History and audit are deleted by these functions alone, with the rights of their owner. The nodes' role may add rows and
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

-- The rights on them: nobody has more between this migration and the next run of deploy/roles.sql.
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
        -- A caller must not be able to put tables of its own in the place of these.
        execute format('alter function %s set search_path = %I, pg_temp', named, current_schema());
        execute format('revoke all on function %s from public', named);
        -- Roles that may delete by default: nodes delete by these functions alone.
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

-- A role that does not own the tables sees and writes rows of the tenants that its session names, one on a line, or of all
-- (`*`); if it names none, no row. The owner is not bound by this. The selects are there to be run once for a statement and
-- not once for a row. A later migration that adds a table repeats this for it.
do $$
declare
    named text;
begin
    foreach named in array array[
        'tenants', 'exchanges', 'exchange_payloads', 'inbox_items', 'messages', 'exchange_events',
        'idempotency_keys', 'decision_nonces', 'asked_approvers', 'credentials', 'token_revocations',
        'signing_keys', 'device_statements', 'introductions', 'invitations', 'channels', 'enforcers',
        'pairing_sessions', 'pairings', 'routing_tokens', 'pairing_guesses', 'prompts', 'prompt_payloads',
        'sessions', 'session_snapshots', 'notifications', 'audit_events'
    ] loop
        execute format('alter table %I enable row level security', named);
        execute format($policy$
            create policy tenant_reach on %I using (
                tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
                or (select current_setting('countersign.tenants', true) = '*')
            )
        $policy$, named);
    end loop;
end
$$;
