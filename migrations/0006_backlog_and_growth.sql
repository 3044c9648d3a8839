-- Decisions without a signature.

-- Whether an approver never had a signing key; null while one is being registered. Until the end of the transaction none can
-- be. Volatile, so that its query has a snapshot of its own, taken once the lock is held: the calling statement's may be older
-- than a key. Registration takes the same lock, exclusively.
create function has_no_signing_key(tenant text, approver text) returns boolean
    language plpgsql volatile
    as $$
begin
    if not pg_try_advisory_xact_lock_shared(hashtextextended(tenant || chr(10) || approver, 0)) then
        return null;
    end if;
    return not exists (select from signing_keys k where k.tenant_id = tenant and k.approver_id = approver);
end
$$;

-- Push: what is due to an enforcer's channel is found without reading what is not. First what was never offered, by age; then
-- by the time of the next offer. By kind, since each is pushed for a time of its own.
create index messages_due
    on messages (tenant_id, recipient, kind, coalesce(next_attempt_at, timestamptz '-infinity'), created_at, message_id)
    where recipient_kind = 'enforcer' and acked_at is null;

-- Growth: what is due is found by an index, updates of exchanges stay on their page, and vacuum keeps up.
--
-- `if not exists`: on a large database what takes long can be done beforehand, without blocking anyone; see CHANGELOG.md.
--
-- Many predicates below say something simple in an unusual way. A statement that finds a row by its key must not be able to
-- use these indexes: where a table was not analysed yet, the planner takes a partial index to be almost empty.

-- An update that changes a column of any index, or of its predicate, cannot stay on its page and writes to every index of its
-- table. Of an exchange's tables one has to be indexed by state: the inbox items, which are open exactly as long as their
-- exchange is pending. So that the exchanges themselves need not be, they are found through their items.
--
-- The expiry sweep looks across tenants.
create index if not exists inbox_items_due on inbox_items (expires_at, tenant_id, request_id)
    where coalesce(closed_at, 'infinity') = 'infinity';
-- Exchanges by state: pending, and ended without a decision.
create index if not exists inbox_items_pending on inbox_items (tenant_id, created_at, request_id)
    where coalesce(closed_at, 'infinity') = 'infinity';
create index if not exists inbox_items_ended on inbox_items (tenant_id, closed_as, created_at, request_id)
    where coalesce(closed_as, 'decided') <> 'decided';
-- Decided and not delivered.
create index if not exists messages_undelivered on messages (tenant_id, created_at)
    where kind = 'decision.deliver' and coalesce(acked_at, '-infinity') = '-infinity';

-- Payloads by age, so that scrubbing reads those that are still there. The age of older rows is not known: they are looked at
-- by every pass until they are gone. Never null; the predicate hides this index from other statements.
alter table exchange_payloads add column if not exists stored_at timestamptz default '1970-01-01 00:00:00+00';
alter table exchange_payloads alter column stored_at set default clock_timestamp();
create index if not exists exchange_payloads_artifacts on exchange_payloads (tenant_id, stored_at, request_id)
    where part = 'artifact' and stored_at is not null;
-- Prompts may stay queued for long, and are not scrubbed until they no longer are.
alter table prompts add column if not exists scrubbed boolean not null default false;
create index if not exists prompts_unscrubbed on prompts (tenant_id, accepted_at)
    where not scrubbed and status <> 'queued';
-- The row of a snapshot stays when its body goes.
alter table session_snapshots add column if not exists scrubbed boolean not null default false;
create index if not exists session_snapshots_unscrubbed on session_snapshots (tenant_id, received_at)
    where not scrubbed;

-- When a routing token ended because another took its place. It is forgotten some time later, and from then on unknown.
alter table routing_tokens add column replaced_at timestamptz;
update routing_tokens t
   set replaced_at = p.paired_at
  from pairings p
 where p.tenant_id = t.tenant_id and p.enforcer_id = t.enforcer_id and p.approver_id = t.approver_id
   and p.token_hash <> t.token_hash;
create index if not exists routing_tokens_replaced on routing_tokens (tenant_id, replaced_at)
    where replaced_at is not null;
create index if not exists pairings_revoked on pairings (tenant_id, revoked_at)
    where revoked_at is not null;

-- Lists of pairings in force, of a side and of all.
create index if not exists pairings_of_enforcer on pairings (tenant_id, enforcer_id, paired_at, nonce)
    where coalesce(revoked_at, 'infinity') = 'infinity';
create index if not exists pairings_of_approver on pairings (tenant_id, approver_id, paired_at, nonce)
    where coalesce(revoked_at, 'infinity') = 'infinity';
create index if not exists pairings_in_force on pairings (tenant_id, paired_at, nonce)
    where coalesce(revoked_at, 'infinity') = 'infinity';

-- Enforcers, those seen last first; all of them.
create index if not exists enforcers_by_sight on enforcers (tenant_id, seen_at desc, enforcer_id)
    where coalesce(seen_at, 'infinity') > '-infinity';

-- Which node does a sweep that one does for all of them, and until when no other may begin.
create table sweep_leases (
    sweep   text collate "C" not null,
    node_id uuid not null,
    until   timestamptz not null,
    constraint sweep_leases_pkey primary key (sweep)
);

-- By default vacuum begins when a fifth of a table has changed, which is late for a large one: until then every reader of an
-- index steps over what has left it. And it may take a while: the default cost limit is meant for disks.
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
-- Small, and rewritten all the time: as often as that, whatever their size.
alter table nodes set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
alter table channels set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table enforcers set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
alter table pairing_guesses set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- A decision almost doubles the row, and there must be room for that on its page.
alter table exchanges set (fillfactor = 45);
-- Last, because nobody can read the table from here to the end of the migration.
drop index if exists exchanges_due;
