-- Nodes and their channels, enforcers, pairing, prompts, sessions and notifications.

-- A node's heartbeat is the lease of all its channels.
create table nodes (
    node_id      uuid not null,
    name         text not null,
    started_at   timestamptz not null,
    heartbeat_at timestamptz not null,
    -- Tells a cluster secret from another without knowing it: nodes that differ here cannot read each other's pairing codes.
    secret_check bytea,
    constraint nodes_pkey primary key (node_id)
);

create table channels (
    tenant_id  text collate "C" not null,
    kind       text collate "C" not null,
    identity   text collate "C" not null,
    channel_id uuid not null,
    node_id    uuid not null,
    transport  text not null,
    opened_at  timestamptz not null,
    active     boolean not null default true,
    constraint channels_pkey primary key (tenant_id, kind, identity, channel_id),
    constraint channels_kind check (kind in ('enforcer', 'approver')),
    constraint channels_transport check (transport in ('websocket', 'sse'))
);

create index channels_by_node on channels (node_id);

-- Which node does a sweep that one does for all of them, and until when no other may begin.
create table sweep_leases (
    sweep   text collate "C" not null,
    node_id uuid not null,
    until   timestamptz not null,
    constraint sweep_leases_pkey primary key (sweep)
);

-- An enforcer beside its live channels.
create table enforcers (
    tenant_id      text collate "C" not null,
    enforcer_id    text collate "C" not null,
    label          text,
    workspace_name text,
    capabilities   json,
    transport      text not null,
    called_at      timestamptz,
    closed_at      timestamptz,
    seen_at        timestamptz not null,
    constraint enforcers_pkey primary key (tenant_id, enforcer_id),
    constraint enforcers_transport check (transport in ('websocket', 'sse', 'poll'))
) with (fillfactor = 80);

-- Enforcers, those seen last first; all of them.
create index enforcers_by_sight on enforcers (tenant_id, seen_at desc, enforcer_id)
    where coalesce(seen_at, 'infinity') > '-infinity';

-- One attempt at pairing. The code is kept only as a keyed hash.
create table pairing_sessions (
    tenant_id      text collate "C" not null,
    nonce          text collate "C" not null,
    operation_id   uuid not null,
    code_hash      bytea not null,
    enforcer_id    text collate "C" not null,
    enforcer_label text,
    workspace_name text,
    enforcer_key   text,
    created_at     timestamptz not null,
    expires_at     timestamptz not null,
    resolved_at    timestamptz,
    completed_at   timestamptz,
    approver_id    text collate "C",
    approver_key   text,
    constraint pairing_sessions_pkey primary key (tenant_id, nonce),
    constraint pairing_sessions_code_key unique (tenant_id, code_hash),
    constraint pairing_sessions_completed check ((completed_at is null) = (approver_id is null))
);

-- Retention looks across tenants.
create index pairing_sessions_due on pairing_sessions (expires_at);

-- One row per enforcer and approver, which a new pairing of the same two takes over. The routing token is kept only as its
-- hash.
create table pairings (
    tenant_id      text collate "C" not null,
    enforcer_id    text collate "C" not null,
    approver_id    text collate "C" not null,
    nonce          text collate "C" not null,
    token_hash     bytea not null,
    enforcer_label text,
    workspace_name text,
    enforcer_key   text,
    approver_key   text,
    paired_at      timestamptz not null,
    revoked_at     timestamptz,
    constraint pairings_pkey primary key (tenant_id, enforcer_id, approver_id)
);

create index pairings_by_approver on pairings (tenant_id, approver_id, enforcer_id);
create index pairings_revoked on pairings (tenant_id, revoked_at)
    where revoked_at is not null;
-- Lists of pairings in force, of a side and of all.
create index pairings_of_enforcer on pairings (tenant_id, enforcer_id, paired_at, nonce)
    where coalesce(revoked_at, 'infinity') = 'infinity';
create index pairings_of_approver on pairings (tenant_id, approver_id, paired_at, nonce)
    where coalesce(revoked_at, 'infinity') = 'infinity';
create index pairings_in_force on pairings (tenant_id, paired_at, nonce)
    where coalesce(revoked_at, 'infinity') = 'infinity';

-- Every routing token there ever was, so that a replaced one is told from one that never was. It is good while it is its
-- pairing's own and that is not revoked.
create table routing_tokens (
    tenant_id   text collate "C" not null,
    token_hash  bytea not null,
    enforcer_id text collate "C" not null,
    approver_id text collate "C" not null,
    created_at  timestamptz not null,
    -- When another took its place. It is deleted some time later, and from then on unknown.
    replaced_at timestamptz,
    constraint routing_tokens_pkey primary key (tenant_id, token_hash)
);

create index routing_tokens_replaced on routing_tokens (tenant_id, replaced_at)
    where replaced_at is not null;

-- Wrong codes in the window that runs: per principal, and under the empty name for the tenant as a whole.
create table pairing_guesses (
    tenant_id  text collate "C" not null,
    principal  text collate "C" not null,
    started_at timestamptz not null,
    failures   integer not null,
    constraint pairing_guesses_pkey primary key (tenant_id, principal)
) with (fillfactor = 80);

create table prompts (
    tenant_id     text collate "C" not null,
    request_id    text collate "C" not null,
    submission_id uuid not null,
    operation_id  uuid not null,
    message_id    uuid not null,
    enforcer_id   text collate "C" not null,
    -- Null for an administrator.
    approver_id   text collate "C",
    session_id    text collate "C",
    form          text not null,
    prompt_hash   text collate "C" not null,
    status        text not null,
    ack_at        timestamptz not null,
    details       json,
    accepted_at   timestamptz not null,
    expires_at    timestamptz,
    -- Prompts may stay queued for long, and are not scrubbed until they no longer are.
    scrubbed      boolean not null default false,
    constraint prompts_pkey primary key (tenant_id, request_id),
    constraint prompts_form check (form in ('sealed', 'open')),
    constraint prompts_status check (status in ('queued', 'delivered', 'rejected', 'expired', 'error'))
) with (fillfactor = 80);

-- The expiry sweep looks across tenants.
create index prompts_due on prompts (expires_at) where status = 'queued' and expires_at is not null;
create index prompts_by_age on prompts (tenant_id, accepted_at);
create index prompts_unscrubbed on prompts (tenant_id, accepted_at)
    where not scrubbed and status <> 'queued';

-- Insert-only, like the payloads of exchanges.
create table prompt_payloads (
    tenant_id  text collate "C" not null,
    request_id text collate "C" not null,
    body       json not null,
    trace      json,
    constraint prompt_payloads_pkey primary key (tenant_id, request_id)
) with (toast_tuple_target = 8160);

alter table prompt_payloads alter column body set storage external;
alter table prompt_payloads alter column trace set storage external;

create table sessions (
    tenant_id   text collate "C" not null,
    session_id  text collate "C" not null,
    enforcer_id text collate "C" not null,
    operation_id uuid not null,
    agent_host  text,
    repo_ref    text,
    metadata    json,
    state       text not null,
    -- The client's own times: when it started, when its state was last reported, when anything was, when it ended.
    started_at  timestamptz,
    state_at    timestamptz,
    updated_at  timestamptz not null,
    ended_at    timestamptz,
    end_reason  text,
    -- Hashes of the events themselves, by which a repeat is told from another event.
    start_hash  bytea,
    status_hash bytea,
    end_hash    bytea,
    details     json,
    -- When the gateway last heard of it.
    heard_at    timestamptz not null,
    constraint sessions_pkey primary key (tenant_id, session_id),
    constraint sessions_state check (state in ('idle', 'planning', 'editing', 'executing', 'waiting_approval', 'error')),
    constraint sessions_reason check (end_reason in ('user_end', 'timeout', 'policy_kill')),
    constraint sessions_ended check ((ended_at is null) = (end_reason is null))
) with (fillfactor = 80);

create index sessions_by_age on sessions (tenant_id, heard_at);

create table session_snapshots (
    tenant_id     text collate "C" not null,
    session_id    text collate "C" not null,
    snapshot_id   text collate "C" not null,
    snapshot_type text not null,
    snapshot_hash text collate "C" not null,
    created_at    timestamptz not null,
    received_at   timestamptz not null,
    -- The event as it was sent.
    body          json not null,
    -- The row of a snapshot stays when its body goes.
    scrubbed      boolean not null default false,
    constraint session_snapshots_pkey primary key (tenant_id, session_id, snapshot_id),
    constraint session_snapshots_type check (snapshot_type in ('summary', 'plan', 'diff_summary', 'context'))
) with (toast_tuple_target = 8160);

alter table session_snapshots alter column body set storage external;

create index session_snapshots_newest on session_snapshots (tenant_id, session_id, created_at, snapshot_id);
create index session_snapshots_unscrubbed on session_snapshots (tenant_id, received_at)
    where not scrubbed;

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
    -- It was told of everything in the inbox up to a time, and after that of these messages. A set, because a submission may
    -- commit after a younger one was told of.
    seen_until      timestamptz not null,
    seen            uuid[] not null default '{}',
    -- Counts the deliveries. The next one keeps its number until it is delivered, however often it is sent.
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

-- Small, and rewritten all the time: vacuumed as often, whatever their size.
alter table nodes set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
alter table channels set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table enforcers set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
alter table pairing_guesses set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
