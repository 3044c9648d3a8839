-- Where approvers are told that something waits: browsers (Web Push) and webhooks. Written when one is added or removed and when a
-- notification was sent, never by a submission.
create table notifications (
    tenant_id       text collate "C" not null,
    approver_id     text collate "C" not null,
    notification_id uuid not null,
    kind            text not null,
    -- The browser, which is a device of the approver. The row goes when the device does.
    device_id       text collate "C",
    -- A keyed hash of the URL, to recognise it.
    url_hash        bytea not null,
    -- The URL and its keys or secret, encrypted with a key that the nodes derive from their cluster secret; and which secret that was.
    target          bytea not null,
    secret_check    bytea not null,
    created_at      timestamptz not null,
    -- What of the inbox it was told of: everything up to a time, and after that these messages. A set, because a submission may commit
    -- after a younger one was told of.
    seen_until      timestamptz not null,
    seen            uuid[] not null default '{}',
    -- Counts what was delivered. The next one keeps its number until it is, whoever sends it how often.
    delivered       bigint not null default 0,
    delivered_at    timestamptz,
    attempts        integer not null default 0,
    next_attempt_at timestamptz not null,
    failing_since   timestamptz,
    failure         text,
    disabled_at     timestamptz,
    -- Which claim is sending, and until when no other may.
    claim           uuid,
    claimed_until   timestamptz not null default '-infinity',
    constraint notifications_kind check (kind in ('webpush', 'webhook')),
    constraint notifications_device check ((kind = 'webpush') = (device_id is not null)),
    constraint notifications_failure check ((failing_since is null) = (failure is null))
) with (fillfactor = 70);
alter table notifications add constraint notifications_url_key unique (tenant_id, approver_id, url_hash);
alter table notifications add constraint notifications_pkey primary key (tenant_id, approver_id, notification_id);
alter table notifications enable row level security;
create policy tenant_reach on notifications using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

-- docs/history.md says the same.
comment on table audit_events is 'What was done to tenants, credentials, invitations, keys, devices, notifications, pairings and pending exchanges. Rows are added, and forgotten after retention.audit_seconds, never changed.';
comment on column audit_events.actor is 'who did it: enforcer:, approver: or admin: and an id, operator, gateway, certificate holder, invitation holder or command line';
