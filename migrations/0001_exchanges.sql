-- Tenants, and the life cycle of exchanges.
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

-- The words of the tables that are written most are domains: every statement that writes parses check constraints anew,
-- which was a fifth of the cost of a statement for a single row.
create domain exchange_state as text collate "C"
    check (value in ('pendingApproval', 'decided', 'delivered', 'expired', 'withdrawn', 'cancelled'));
create domain exchange_end as text collate "C" check (value in ('decided', 'expired', 'withdrawn', 'cancelled'));
create domain artifact_form as text collate "C" check (value in ('sealed', 'open'));
create domain verdict as text collate "C" check (value in ('approve', 'reject'));
create domain verification as text collate "C" check (value in ('registered', 'none', 'off'));
create domain payload_part as text collate "C" check (value in ('artifact', 'decision', 'outcome'));
create domain recipient_kind as text collate "C" check (value in ('enforcer', 'approver'));
create domain message_kind as text collate "C"
    check (value in ('decision.deliver', 'exchange.withdrawn', 'refresh.request', 'prompt.send'));

-- Two rules for the indexes below.
--
-- The key of the row comes last: where two indexes look equally good, as they all do on a table that was not analysed yet,
-- the planner takes the newest. Any index but the key reads all that a tenant has in order to find one row.
--
-- Many predicates say something simple in an unusual way. A statement that finds a row by its key must not be able to use
-- these indexes: where a table was not analysed yet, the planner takes a partial index to be almost empty.

-- Small and rewritten on every transition. A decision almost doubles the row, and each page has room for that, so that the
-- new version stays beside the old one.
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
    -- How far the gateway vouches for the decision's signature.
    verification        verification,
    constraint exchanges_decided check (
        (state in ('decided', 'delivered')) = (decided_at is not null)
        and (decided_at is null) = (decision is null)
        and (state = 'delivered') = (delivered_at is not null)
    )
) with (fillfactor = 45);

create index exchanges_by_age on exchanges (tenant_id, accepted_at, request_id);
alter table exchanges add constraint exchanges_pkey primary key (tenant_id, request_id);

-- Insert-only. `json` keeps the text it was given; `jsonb` would rewrite what endpoints signed.
create table exchange_payloads (
    tenant_id  text collate "C" not null,
    request_id text collate "C" not null,
    part       payload_part not null,
    body       json not null,
    trace      json,
    -- Never null; the predicate below hides the index from other statements.
    stored_at  timestamptz default clock_timestamp(),
    constraint exchange_payloads_pkey primary key (tenant_id, request_id, part)
) with (toast_tuple_target = 8160);

-- Ciphertext does not compress; trying costs more than it saves. Plain storage can be weighed without reading it.
alter table exchange_payloads alter column body set storage external;
alter table exchange_payloads alter column trace set storage external;

-- By age, so that scrubbing reads the payloads that are still there.
create index exchange_payloads_artifacts on exchange_payloads (tenant_id, stored_at, request_id)
    where part = 'artifact' and stored_at is not null;

-- The approvers that were asked, and at the same time the outbox of approval requests.
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
    -- The sender, so that one enforcer's share of an inbox can be counted.
    enforcer_id text collate "C",
    constraint inbox_items_closed check ((closed_at is null) = (closed_as is null))
) with (fillfactor = 80);

create index inbox_items_open on inbox_items (tenant_id, approver_id, created_at, message_id)
    where closed_at is null and removed_at is null;
create index inbox_items_expired on inbox_items (tenant_id, approver_id, created_at, message_id)
    where closed_as = 'expired' and removed_at is null;
-- The message before the approver: beginning with tenant and approver, it would answer to the key of an item too.
alter table inbox_items add constraint inbox_items_message_key unique (tenant_id, message_id, approver_id);
alter table inbox_items add constraint inbox_items_pkey primary key (tenant_id, request_id, approver_id);

-- An update that changes a column of any index, or of its predicate, cannot stay on its page and writes to every index of its
-- table. Of an exchange's tables one has to be indexed by state: the inbox items, which are open exactly as long as their
-- exchange is pending. The exchanges themselves need no such index, because they are found through their items.
--
-- The expiry sweep looks across tenants.
create index inbox_items_due on inbox_items (expires_at, tenant_id, request_id)
    where coalesce(closed_at, 'infinity') = 'infinity';
-- Exchanges by state: pending, and ended without a decision.
create index inbox_items_pending on inbox_items (tenant_id, created_at, request_id)
    where coalesce(closed_at, 'infinity') = 'infinity';
create index inbox_items_ended on inbox_items (tenant_id, closed_as, created_at, request_id)
    where coalesce(closed_as, 'decided') <> 'decided';

-- Everything else that is pushed. The envelope is put together from the exchange when it is sent.
create table messages (
    tenant_id       text collate "C" not null,
    recipient_kind  recipient_kind not null,
    recipient       text collate "C" not null,
    message_id      uuid not null,
    kind            message_kind not null,
    request_id      text collate "C" not null,
    seq             integer not null,
    sender          text,
    body            json,
    created_at      timestamptz not null,
    acked_at        timestamptz,
    -- The channel that it was last offered on, and how often and when it was.
    target_channel  uuid,
    offers          integer not null default 0,
    offered_at      timestamptz,
    next_attempt_at timestamptz,
    -- Past this a message is not pushed.
    expires_at      timestamptz
) with (fillfactor = 80);

create index messages_by_exchange on messages (tenant_id, request_id);
create unique index messages_one_open_refresh on messages (tenant_id, request_id)
    where kind = 'refresh.request' and acked_at is null;
-- Messages still to be pushed. By kind, since each is pushed for a time of its own: older ones are not even read.
create index messages_open on messages (tenant_id, recipient_kind, recipient, kind, created_at, message_id)
    where acked_at is null;
alter table messages add constraint messages_pkey primary key (tenant_id, recipient_kind, recipient, message_id);
-- Messages that are due to an enforcer's channel: first those never offered, by age; then by the time of the next offer.
create index messages_due
    on messages (tenant_id, recipient, kind, coalesce(next_attempt_at, timestamptz '-infinity'), created_at, message_id)
    where recipient_kind = 'enforcer' and acked_at is null;
-- Decided and not delivered.
create index messages_undelivered on messages (tenant_id, created_at)
    where kind = 'decision.deliver' and coalesce(acked_at, '-infinity') = '-infinity';

-- Append-only: each transition of an exchange, its actor and its node.
create table exchange_events (
    tenant_id  text collate "C" not null,
    request_id text collate "C" not null,
    at         timestamptz not null,
    event_id   uuid not null,
    from_state text,
    to_state   text not null,
    actor      text not null,
    node       text not null,
    principal  text,
    address    text,
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

-- A nonce counts once per signing key: written by the statement that decides, deleted after retention.nonce_seconds. One of
-- more than 64 bytes stands here as its hash, so that every key fits into an index.
create table decision_nonces (
    tenant_id     text collate "C" not null,
    approver_id   text collate "C" not null,
    signer_key_id text collate "C" not null,
    nonce         text collate "C" not null,
    used_at       timestamptz not null
);

-- Retention looks across tenants, here and below.
create index decision_nonces_due on decision_nonces (used_at);
alter table decision_nonces
    add constraint decision_nonces_pkey primary key (tenant_id, approver_id, signer_key_id, nonce);

-- Which enforcer has asked which approver, whose keys it may then read. The time is renewed once a day. Rows are deleted
-- with the exchanges.
create table asked_approvers (
    tenant_id   text collate "C" not null,
    approver_id text collate "C" not null,
    enforcer_id text collate "C" not null,
    asked_at    timestamptz not null
);

create index asked_approvers_due on asked_approvers (asked_at);
alter table asked_approvers add constraint asked_approvers_pkey primary key (tenant_id, approver_id, enforcer_id);

-- By default vacuum begins when a fifth of a table has changed, which is late for a large one: until then every reader of an
-- index steps over the rows that have left it. And it may take a while: the default cost limit is meant for disks.
alter table exchanges set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
                           autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000);
alter table inbox_items set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
                             autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000);
alter table messages set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
                          autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000);
-- Rows are added, and deleted by retention: marked as visible to all soon, they need no second look.
alter table exchange_payloads set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
                                   autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000,
                                   toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 2000,
                                   toast.autovacuum_vacuum_cost_limit = 1000);
alter table exchange_events set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
                                 autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000);
alter table idempotency_keys set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
                                  autovacuum_vacuum_cost_limit = 1000);
alter table decision_nonces set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
                                 autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000);
