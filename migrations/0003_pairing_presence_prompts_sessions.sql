-- Pairing, presence, prompts and sessions.

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

-- Forgetting looks across tenants.
create index pairing_sessions_due on pairing_sessions (expires_at);

-- Who is paired with whom: one row per two, which a new pairing of the same two takes over. The routing token is kept only
-- as its hash.
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

-- Every routing token there ever was, so that a replaced one is told from one that never was. It is good while it is its
-- pairing's own and that is not revoked.
create table routing_tokens (
    tenant_id   text collate "C" not null,
    token_hash  bytea not null,
    enforcer_id text collate "C" not null,
    approver_id text collate "C" not null,
    created_at  timestamptz not null,
    constraint routing_tokens_pkey primary key (tenant_id, token_hash)
);

-- Wrong codes in the window that runs: per principal, and under the empty name for the tenant as a whole.
create table pairing_guesses (
    tenant_id  text collate "C" not null,
    principal  text collate "C" not null,
    started_at timestamptz not null,
    failures   integer not null,
    constraint pairing_guesses_pkey primary key (tenant_id, principal)
) with (fillfactor = 80);

-- What is known of each enforcer beside its live channels.
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

-- Told from that of another cluster without knowing it: nodes that differ here cannot read each other's pairing codes.
alter table nodes add column secret_check bytea;

create table prompts (
    tenant_id     text collate "C" not null,
    request_id    text collate "C" not null,
    submission_id uuid not null,
    operation_id  uuid not null,
    message_id    uuid not null,
    enforcer_id   text collate "C" not null,
    -- None for an administrator.
    approver_id   text collate "C",
    session_id    text collate "C",
    form          text not null,
    prompt_hash   text collate "C" not null,
    status        text not null,
    ack_at        timestamptz not null,
    details       json,
    accepted_at   timestamptz not null,
    expires_at    timestamptz,
    constraint prompts_pkey primary key (tenant_id, request_id),
    constraint prompts_form check (form in ('sealed', 'open')),
    constraint prompts_status check (status in ('queued', 'delivered', 'rejected', 'expired', 'error'))
) with (fillfactor = 80);

-- The expiry sweep looks across tenants.
create index prompts_due on prompts (expires_at) where status = 'queued' and expires_at is not null;
create index prompts_by_age on prompts (tenant_id, accepted_at);

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

-- Past this a message is not pushed.
alter table messages add column expires_at timestamptz;

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
    constraint session_snapshots_pkey primary key (tenant_id, session_id, snapshot_id),
    constraint session_snapshots_type check (snapshot_type in ('summary', 'plan', 'diff_summary', 'context'))
) with (toast_tuple_target = 8160);

alter table session_snapshots alter column body set storage external;

create index session_snapshots_newest on session_snapshots (tenant_id, session_id, created_at, snapshot_id);
