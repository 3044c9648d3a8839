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
