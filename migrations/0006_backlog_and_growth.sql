-- Push: what is due to an enforcer's channel is found without reading what is not. First what was never offered, by age; then
-- by the time of the next offer. By kind, since each is pushed for a time of its own.
create index messages_due
    on messages (tenant_id, recipient, kind, coalesce(next_attempt_at, timestamptz '-infinity'), created_at, message_id)
    where recipient_kind = 'enforcer' and acked_at is null;
