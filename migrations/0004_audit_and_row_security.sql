-- Who did what to tenants, credentials, keys, pairings and pending exchanges; and a second wall between tenants.

-- Append-only: a row per action that took effect, written by the statement that took it. Never a secret, code or token.
create table audit_events (
    tenant_id text collate "C" not null,
    at        timestamptz not null,
    event_id  uuid not null,
    actor     text not null,
    -- The credential that was used; none for the operator's key and the command line.
    principal text,
    action    text not null,
    subject   text not null,
    address   text,
    node      text not null,
    constraint audit_events_pkey primary key (tenant_id, at, event_id)
);

-- A role that does not own the tables sees and writes rows of the tenants that its session names, one on a line, or of all
-- (`*`); if it names none, no row. The owner is not bound by this. The selects are there to be run once for a statement and
-- not once for a row. A table that is added later needs the same two lines.
alter table tenants enable row level security;
create policy tenant_reach on tenants using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table credentials enable row level security;
create policy tenant_reach on credentials using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table signing_keys enable row level security;
create policy tenant_reach on signing_keys using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table exchanges enable row level security;
create policy tenant_reach on exchanges using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table exchange_payloads enable row level security;
create policy tenant_reach on exchange_payloads using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table inbox_items enable row level security;
create policy tenant_reach on inbox_items using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table messages enable row level security;
create policy tenant_reach on messages using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table exchange_events enable row level security;
create policy tenant_reach on exchange_events using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table idempotency_keys enable row level security;
create policy tenant_reach on idempotency_keys using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table channels enable row level security;
create policy tenant_reach on channels using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table pairing_sessions enable row level security;
create policy tenant_reach on pairing_sessions using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table pairings enable row level security;
create policy tenant_reach on pairings using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table routing_tokens enable row level security;
create policy tenant_reach on routing_tokens using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table pairing_guesses enable row level security;
create policy tenant_reach on pairing_guesses using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table enforcers enable row level security;
create policy tenant_reach on enforcers using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table prompts enable row level security;
create policy tenant_reach on prompts using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table prompt_payloads enable row level security;
create policy tenant_reach on prompt_payloads using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table sessions enable row level security;
create policy tenant_reach on sessions using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table session_snapshots enable row level security;
create policy tenant_reach on session_snapshots using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

alter table audit_events enable row level security;
create policy tenant_reach on audit_events using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

-- The views show what their reader may see, not what their owner may.
alter view exchange_history set (security_invoker = true);
alter view pending_inbox set (security_invoker = true);
