-- Tenants, credentials, signing keys, and the exchange life cycle.
--
-- Every key of exchange data begins with the tenant, so that the tables can be distributed by it; nothing refers across
-- tenants. Ids are compared by bytes (collate "C"), on every platform alike: the one lock order depends on it.

create table tenants (
    tenant_id   text collate "C" not null,
    name        text not null,
    created_at  timestamptz not null default clock_timestamp(),
    disabled_at timestamptz,
    constraint tenants_pkey primary key (tenant_id)
);

-- Found before the tenant is known, hence the second unique key; small enough to be a reference table when sharded.
create table credentials (
    tenant_id     text collate "C" not null,
    credential_id text collate "C" not null,
    kind          text not null,
    role          text not null,
    bound_id      text collate "C",
    secret_hash   bytea,
    thumbprint    bytea,
    created_at    timestamptz not null default clock_timestamp(),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    last_used_at  timestamptz,
    changed_at    timestamptz not null default clock_timestamp(),
    constraint credentials_pkey primary key (tenant_id, credential_id),
    constraint credentials_id_key unique (credential_id),
    constraint credentials_thumbprint_key unique (thumbprint),
    constraint credentials_role check (role in ('enforcer', 'approver', 'admin')),
    constraint credentials_kind check (
        (kind = 'apiKey' and secret_hash is not null and thumbprint is null)
        or (kind = 'certificate' and thumbprint is not null and secret_hash is null)
    )
);

create index credentials_changed on credentials (changed_at);

create table signing_keys (
    tenant_id     text collate "C" not null,
    approver_id   text collate "C" not null,
    signer_key_id text collate "C" not null,
    public_key    bytea not null,
    not_before    timestamptz,
    not_after     timestamptz,
    created_at    timestamptz not null default clock_timestamp(),
    revoked_at    timestamptz,
    constraint signing_keys_pkey primary key (tenant_id, approver_id, signer_key_id),
    constraint signing_keys_public_key check (octet_length(public_key) = 32)
);

-- The words of the tables that are written most, as domains: check constraints are parsed anew by every statement that
-- writes, which was a fifth of what one for a single row costs.
create domain exchange_state as text collate "C"
    check (value in ('pendingApproval', 'decided', 'delivered', 'expired', 'withdrawn', 'cancelled'));
create domain exchange_end as text collate "C" check (value in ('decided', 'expired', 'withdrawn', 'cancelled'));
create domain artifact_form as text collate "C" check (value in ('sealed', 'open'));
create domain verdict as text collate "C" check (value in ('approve', 'reject'));
create domain payload_part as text collate "C" check (value in ('artifact', 'decision'));
create domain recipient_kind as text collate "C" check (value in ('enforcer', 'approver'));
create domain message_kind as text collate "C"
    check (value in ('decision.deliver', 'exchange.withdrawn', 'refresh.request', 'prompt.send'));

-- Small and rewritten on every transition: room is left on each page so that the new version stays beside the old one.
create table exchanges (
    tenant_id           text collate "C" not null,
    request_id          text collate "C" not null,
    submission_id       uuid not null,
    operation_id        uuid not null,
    state               exchange_state not null,
    seq                 integer not null,
    enforcer_id         text collate "C" not null,
    form                artifact_form not null,
    artifact_type       text not null,
    artifact_hash       text collate "C" not null,
    repo_ref            text,
    accepted_at         timestamptz not null,
    expires_at          timestamptz not null,
    decision            verdict,
    decided_by          text collate "C",
    signer_key_id       text collate "C",
    nonce               text collate "C",
    signature           text collate "C",
    verified            boolean,
    decision_message_id uuid,
    decided_at          timestamptz,
    delivered_at        timestamptz,
    ended_at            timestamptz,
    end_reason          text,
    constraint exchanges_decided check (
        (state in ('decided', 'delivered')) = (decided_at is not null)
        and (decided_at is null) = (decision is null)
        and (state = 'delivered') = (delivered_at is not null)
    )
) with (fillfactor = 80);

-- Here and below the key of the row comes last: where two indexes look equally good, as they all do on a table that was not
-- analysed yet, the planner takes the newest, and anything else than the key reads all that a tenant has in order to find one
-- of them.

-- The expiry sweep looks across tenants, so this one index does not start with them; it holds only what is pending.
create index exchanges_due on exchanges (expires_at) where state = 'pendingApproval';
create index exchanges_by_age on exchanges (tenant_id, accepted_at, request_id);
alter table exchanges add constraint exchanges_pkey primary key (tenant_id, request_id);

-- Insert-only. `json` keeps the text it was given; `jsonb` would rewrite what endpoints signed.
create table exchange_payloads (
    tenant_id  text collate "C" not null,
    request_id text collate "C" not null,
    part       payload_part not null,
    body       json not null,
    trace      json,
    constraint exchange_payloads_pkey primary key (tenant_id, request_id, part)
) with (toast_tuple_target = 8160);

-- Ciphertext does not compress; trying costs more than it saves. And what is stored plain can be weighed without reading it.
alter table exchange_payloads alter column body set storage external;
alter table exchange_payloads alter column trace set storage external;

-- Who was asked, and at the same time the outbox of approval requests.
create table inbox_items (
    tenant_id   text collate "C" not null,
    request_id  text collate "C" not null,
    approver_id text collate "C" not null,
    message_id  uuid not null,
    created_at  timestamptz not null,
    expires_at  timestamptz not null,
    acked_at    timestamptz,
    removed_at  timestamptz,
    closed_at   timestamptz,
    closed_as   exchange_end,
    constraint inbox_items_closed check ((closed_at is null) = (closed_as is null))
) with (fillfactor = 80);

create index inbox_items_open on inbox_items (tenant_id, approver_id, created_at, message_id)
    where closed_at is null and removed_at is null;
create index inbox_items_expired on inbox_items (tenant_id, approver_id, created_at, message_id)
    where closed_as = 'expired' and removed_at is null;
-- The message before the approver: beginning with tenant and approver, it would answer to the key of an item too.
alter table inbox_items add constraint inbox_items_message_key unique (tenant_id, message_id, approver_id);
alter table inbox_items add constraint inbox_items_pkey primary key (tenant_id, request_id, approver_id);

-- Everything else that is pushed. The envelope is put together from the exchange when it is sent.
create table messages (
    tenant_id      text collate "C" not null,
    recipient_kind recipient_kind not null,
    recipient      text collate "C" not null,
    message_id     uuid not null,
    kind           message_kind not null,
    request_id     text collate "C" not null,
    seq            integer not null,
    sender         text,
    body           json,
    created_at     timestamptz not null,
    acked_at       timestamptz
) with (fillfactor = 80);

create index messages_by_exchange on messages (tenant_id, request_id);
create unique index messages_one_open_refresh on messages (tenant_id, request_id)
    where kind = 'refresh.request' and acked_at is null;
-- What is still to be pushed. By kind, since each is pushed for a time of its own: what is older is not even read.
create index messages_open on messages (tenant_id, recipient_kind, recipient, kind, created_at, message_id)
    where acked_at is null;
alter table messages add constraint messages_pkey primary key (tenant_id, recipient_kind, recipient, message_id);

-- Append-only: what happened to each exchange, by whom, on which node.
create table exchange_events (
    tenant_id  text collate "C" not null,
    request_id text collate "C" not null,
    at         timestamptz not null,
    event_id   uuid not null,
    from_state text,
    to_state   text not null,
    actor      text not null,
    node       text not null,
    constraint exchange_events_pkey primary key (tenant_id, request_id, at, event_id)
);

create table idempotency_keys (
    tenant_id     text collate "C" not null,
    principal     text collate "C" not null,
    key           text collate "C" not null,
    fingerprint   bytea not null,
    submission_id uuid not null,
    request_id    text collate "C" not null,
    expires_at    timestamptz not null,
    constraint idempotency_keys_pkey primary key (tenant_id, principal, key)
);

create index idempotency_keys_due on idempotency_keys (expires_at);

-- One row per exchange, in the state a reader of the API would see at this instant.
create view exchange_history as
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
       e.decided_at - e.accepted_at as time_to_decision
  from exchanges e;

-- What waits in each approver's inbox at this instant.
create view pending_inbox as
select i.tenant_id,
       i.approver_id,
       i.request_id,
       e.enforcer_id,
       e.artifact_type,
       e.accepted_at,
       e.expires_at,
       i.acked_at
  from inbox_items i
  join exchanges e on e.tenant_id = i.tenant_id and e.request_id = i.request_id
 where i.closed_at is null and i.removed_at is null and i.expires_at > clock_timestamp();
