//! pgbench's part of the comparison: the same rows as the gateway's statements write, one
//! transaction for each call, with nothing in between.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The members of one exchange, made up by the script as it goes.
const IDS: &str = r"
\set n :n + 1
\set id :client_id * 10000000 + :n
";

/// Each client reads the body once and then sends it along, as a parameter, with every insert.
const BODY: &str = r"
\if :n = 1
select convert_from(decode('{BODY}', 'base64'), 'utf8') as body \gset
\endif
";

const SUBMIT: &str = r"
begin;
insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form, artifact_type,
                       artifact_hash, accepted_at, expires_at)
values ('bench', md5((:id)::bigint::text)::uuid::text, lpad((:id)::bigint::text, 32, '0')::uuid,
        lpad((:id)::bigint::text, 32, '0')::uuid, 'pendingApproval', 1, 'enforcer-' || (:client_id)::bigint, 'sealed',
        'command.review', '8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1', clock_timestamp(),
        clock_timestamp() + interval '1 hour');
insert into exchange_payloads (tenant_id, request_id, part, body)
values ('bench', md5((:id)::bigint::text)::uuid::text, 'artifact', :body);
insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at)
values ('bench', md5((:id)::bigint::text)::uuid::text, 'approver-' || (:n)::bigint % 500,
        lpad((:id)::bigint::text, 32, '0')::uuid, clock_timestamp(), clock_timestamp() + interval '1 hour');
insert into exchange_events (tenant_id, request_id, at, event_id, to_state, actor, node)
values ('bench', md5((:id)::bigint::text)::uuid::text, clock_timestamp(), lpad((:id)::bigint::text, 32, '0')::uuid,
        'pendingApproval', e'enforcer\x3aenforcer-' || (:client_id)::bigint, 'node-1');
commit;
";

const DECIDE: &str = r#"
begin;
update exchanges
   set state = 'decided', seq = 2, decision = 'approve', decided_by = 'approver-' || (:n)::bigint % 500,
       signer_key_id = 'key-1', nonce = (:id)::bigint::text, verified = true, decided_at = clock_timestamp(),
       decision_message_id = lpad((:id)::bigint::text, 32, '0')::uuid,
       signature = 'BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBw'
 where tenant_id = 'bench' and request_id = md5((:id)::bigint::text)::uuid::text and state = 'pendingApproval'
   and expires_at > clock_timestamp();
update inbox_items set closed_at = clock_timestamp(), closed_as = 'decided'
 where tenant_id = 'bench' and request_id = md5((:id)::bigint::text)::uuid::text and closed_at is null;
insert into exchange_payloads (tenant_id, request_id, part, body)
values ('bench', md5((:id)::bigint::text)::uuid::text, 'decision',
        '{"artifactHash":"8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1","decision":"approve","nonce":"0123456789","signature":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBw","signerKeyId":"key-1"}');
insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, created_at)
values ('bench', 'enforcer', 'enforcer-' || (:client_id)::bigint, lpad((:id)::bigint::text, 32, '0')::uuid,
        'decision.deliver', md5((:id)::bigint::text)::uuid::text, 2, clock_timestamp());
insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, node)
values ('bench', md5((:id)::bigint::text)::uuid::text, clock_timestamp(), lpad((:id)::bigint::text, 32, '0')::uuid,
        'pendingApproval', 'decided', e'approver\x3aapprover-' || (:n)::bigint % 500, 'node-1');
commit;
"#;

const ACKNOWLEDGE: &str = r"
begin;
update messages set acked_at = clock_timestamp()
 where tenant_id = 'bench' and recipient_kind = 'enforcer' and recipient = 'enforcer-' || (:client_id)::bigint
   and message_id = lpad((:id)::bigint::text, 32, '0')::uuid and acked_at is null;
update exchanges set state = 'delivered', seq = 3, delivered_at = clock_timestamp(), ended_at = clock_timestamp()
 where tenant_id = 'bench' and request_id = md5((:id)::bigint::text)::uuid::text and state = 'decided';
insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, node)
values ('bench', md5((:id)::bigint::text)::uuid::text, clock_timestamp(), lpad((:id)::bigint::text, 32, '0')::uuid,
        'decided', 'delivered', e'enforcer\x3aenforcer-' || (:client_id)::bigint, 'node-1');
commit;
";

/// One submission. The body is encoded since pgbench takes `:34`, as in a time, for a variable.
pub fn submission(body: &str) -> String {
    IDS.to_owned() + &BODY.replace("{BODY}", &STANDARD.encode(body)) + SUBMIT
}

/// The tables of `minimal_submission`.
pub const MINIMAL_TABLES: &str = "
create table minimal_exchanges (request_id text primary key, state text not null, body text not null);
create table minimal_items (approver_id text, request_id text, primary key (approver_id, request_id));
";

/// The least that a submission has to write: two rows of tables with a key each, in one statement.
pub fn minimal_submission(body: &str) -> String {
    let insert = r"
with written as (
    insert into minimal_exchanges (request_id, state, body)
    values (md5((:id)::bigint::text)::uuid::text, 'pendingApproval', :body)
    returning request_id)
insert into minimal_items (approver_id, request_id) select 'approver-' || (:n)::bigint % 500, request_id from written;
";
    IDS.to_owned() + &BODY.replace("{BODY}", &STANDARD.encode(body)) + insert
}

/// The three transactions of a whole exchange.
pub fn exchange(body: &str) -> String {
    submission(body) + DECIDE + ACKNOWLEDGE
}
