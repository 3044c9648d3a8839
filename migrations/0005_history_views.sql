-- The views that SQL users read, and the meaning of every column. The views show the rows that their reader may see, not
-- those that their owner may.

-- One row per exchange, in the state a reader of the API would see at this instant.
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

-- One row per decision. Joined by keys alone, so that a reader who does not ask when it was seen does not pay for it.
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

-- The items that wait in each approver's inbox at this instant.
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
comment on view exchange_history is 'One row per exchange, in the state a reader of the API would see at this instant.';
comment on column exchange_history.tenant_id is 'whose it is';
comment on column exchange_history.request_id is 'the exchange, within its tenant';
comment on column exchange_history.state is 'pendingApproval, decided, delivered, expired, withdrawn or cancelled, now: whether or not a node has written its expiry down';
comment on column exchange_history.enforcer_id is 'who submitted it';
comment on column exchange_history.approver_ids is 'who was asked';
comment on column exchange_history.artifact_type is 'what is to be approved, as the enforcer calls it';
comment on column exchange_history.artifact_hash is 'its SHA-256, which the decision names too';
comment on column exchange_history.accepted_at is 'when the gateway took it';
comment on column exchange_history.expires_at is 'until when it could be decided';
comment on column exchange_history.decided_at is 'when a decision was taken';
comment on column exchange_history.decision is 'approve or reject';
comment on column exchange_history.decided_by is 'which approver decided';
comment on column exchange_history.signer_key_id is 'the key that the decision says it is signed with';
comment on column exchange_history.verified is 'whether the gateway verified that signature';
comment on column exchange_history.delivered_at is 'when the enforcer acknowledged the decision';
comment on column exchange_history.ended_at is 'when it came to its end: delivered, expired, withdrawn or cancelled';
comment on column exchange_history.time_to_decision is 'from accepted_at to decided_at';
comment on column exchange_history.seen_by is 'whose clients acknowledged that they have the request; null if none did';
comment on column exchange_history.end_reason is 'the reason given for a withdrawal or a cancel';
comment on column exchange_history.verification is 'how far the gateway vouches for that signature: registered, none (the approver had no key) or off';
comment on column exchange_history.submitted_principal is 'the credential it was submitted with, or the token''s subject and issuer';
comment on column exchange_history.submitted_address is 'where it was submitted from';
comment on column exchange_history.decided_principal is 'the credential the decision was sent with, or the token''s subject and issuer';
comment on column exchange_history.decided_address is 'where the decision was sent from';
comment on column exchange_history.ended_principal is 'the credential it was acknowledged, withdrawn or cancelled with; null if it expired';
comment on column exchange_history.ended_address is 'where that was sent from';

comment on view pending_inbox is 'What waits in each approver''s inbox at this instant, a row for each approver who was asked.';
comment on column pending_inbox.tenant_id is 'whose it is';
comment on column pending_inbox.approver_id is 'whose inbox it is in';
comment on column pending_inbox.request_id is 'the exchange';
comment on column pending_inbox.enforcer_id is 'who submitted it';
comment on column pending_inbox.artifact_type is 'what is to be approved';
comment on column pending_inbox.accepted_at is 'when the gateway took it';
comment on column pending_inbox.expires_at is 'until when it can be decided';
comment on column pending_inbox.acked_at is 'when the approver''s client acknowledged that it has the request; null if it did not';
comment on column pending_inbox.submitted_principal is 'the credential it was submitted with, or the token''s subject and issuer';
comment on column pending_inbox.submitted_address is 'where it was submitted from';

comment on view decision_latency is 'One row per decision: how long it took to be made, and to arrive.';
comment on column decision_latency.tenant_id is 'whose it is';
comment on column decision_latency.request_id is 'the exchange';
comment on column decision_latency.enforcer_id is 'who asked';
comment on column decision_latency.artifact_type is 'what was to be approved';
comment on column decision_latency.decided_by is 'which approver decided';
comment on column decision_latency.decision is 'approve or reject';
comment on column decision_latency.accepted_at is 'when the gateway took the request';
comment on column decision_latency.seen_at is 'when that approver''s client acknowledged the request; null if it did not';
comment on column decision_latency.decided_at is 'when the decision was taken';
comment on column decision_latency.delivered_at is 'when the enforcer acknowledged it; null if it did not yet';
comment on column decision_latency.time_to_decision is 'from accepted_at to decided_at';
comment on column decision_latency.decision_seconds is 'the same in seconds, for percentiles';
comment on column decision_latency.time_to_delivery is 'from decided_at to delivered_at';
comment on column decision_latency.delivery_seconds is 'the same in seconds';
comment on column decision_latency.decided_principal is 'the credential the decision was sent with, or the token''s subject and issuer';
comment on column decision_latency.decided_address is 'where the decision was sent from';

comment on table exchange_events is 'Every transition of an exchange. Rows are added, and forgotten with their exchange, never changed.';
comment on column exchange_events.tenant_id is 'whose it is';
comment on column exchange_events.request_id is 'the exchange';
comment on column exchange_events.at is 'when it happened; an expiry at its time, whenever it was written down';
comment on column exchange_events.event_id is 'the event';
comment on column exchange_events.from_state is 'the state before; null for a submission';
comment on column exchange_events.to_state is 'the state after';
comment on column exchange_events.actor is 'who did it: enforcer:, approver: or admin: and an id, or gateway';
comment on column exchange_events.node is 'the node that wrote it';
comment on column exchange_events.principal is 'the credential it was done with, or the token''s subject and issuer; null for the gateway itself';
comment on column exchange_events.address is 'where the call came from; null for the gateway itself';

comment on table audit_events is 'What was done to tenants, credentials, invitations, keys, devices, notifications, pairings and pending exchanges. Rows are added, and forgotten after retention.audit_seconds, never changed.';
comment on column audit_events.tenant_id is 'whose it is';
comment on column audit_events.at is 'when it was done';
comment on column audit_events.event_id is 'the event';
comment on column audit_events.actor is 'who did it: enforcer:, approver: or admin: and an id, operator, gateway, certificate holder, invitation holder or command line';
comment on column audit_events.principal is 'the credential that was used; null for the operator''s key and the command line';
comment on column audit_events.action is 'what was done, such as credential.revoked';
comment on column audit_events.subject is 'to what';
comment on column audit_events.address is 'where the call came from';
comment on column audit_events.node is 'the node that took it';
comment on column audit_events.detail is 'what more there is to say, such as the role of a new credential and the id it is bound to';
