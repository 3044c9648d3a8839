-- Credentials, revoked tokens, signing keys, devices and invitations.

-- Found before the tenant is known, hence the second unique key; small enough to be a reference table when sharded.
create table credentials (
    tenant_id       text collate "C" not null,
    credential_id   text collate "C" not null,
    kind            text not null,
    role            text not null,
    bound_id        text collate "C",
    secret_hash     bytea,
    thumbprint      bytea,
    created_at      timestamptz not null default clock_timestamp(),
    expires_at      timestamptz,
    revoked_at      timestamptz,
    last_used_at    timestamptz,
    changed_at      timestamptz not null default clock_timestamp(),
    -- A credential waits for its certificate, which the holder binds with a one-time code over a connection that presents
    -- it. SHA-256 of the code.
    code_hash       bytea,
    -- Null once the code was used.
    code_expires_at timestamptz,
    -- When the holder proved to have the certificate; null where a thumbprint was taken on trust.
    bound_at        timestamptz,
    constraint credentials_pkey primary key (tenant_id, credential_id),
    constraint credentials_id_key unique (credential_id),
    constraint credentials_thumbprint_key unique (thumbprint),
    constraint credentials_role check (role in ('enforcer', 'approver', 'admin')),
    constraint credentials_kind check (
        (kind = 'apiKey' and secret_hash is not null and thumbprint is null)
        or (kind = 'certificate' and secret_hash is null)
    )
);

-- Nodes ask across tenants for the rows that changed, here and below.
create index credentials_changed on credentials (changed_at);

-- Tokens that others issued and that a tenant no longer accepts: one by its id, or all of a subject or of the tenant that were
-- issued before a time.
create table token_revocations (
    tenant_id     text collate "C" not null,
    kind          text not null,
    -- The token's id or the subject; empty for all.
    name          text collate "C" not null,
    issued_before timestamptz,
    revoked_at    timestamptz not null,
    changed_at    timestamptz not null default clock_timestamp(),
    constraint token_revocations_pkey primary key (tenant_id, kind, name),
    constraint token_revocations_kind check (kind in ('token', 'subject', 'all')),
    constraint token_revocations_time check ((kind = 'token') = (issued_before is null))
);

create index token_revocations_changed on token_revocations (changed_at);

create table signing_keys (
    tenant_id     text collate "C" not null,
    approver_id   text collate "C" not null,
    signer_key_id text collate "C" not null,
    public_key    bytea not null,
    not_before    timestamptz,
    not_after     timestamptz,
    created_at    timestamptz not null default clock_timestamp(),
    revoked_at    timestamptz,
    -- The nonce of the proof that a key's holder registered it; null for a key that an administrator imported. It counts once.
    proof_nonce   text collate "C",
    constraint signing_keys_pkey primary key (tenant_id, approver_id, signer_key_id),
    constraint signing_keys_public_key check (octet_length(public_key) = 32)
);

create unique index signing_keys_proof_nonce on signing_keys (tenant_id, approver_id, proof_nonce)
    where proof_nonce is not null;

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

-- Append-only: the statements that devices of an approver signed about each other, in the order in which they were accepted,
-- and the resets by administrators between them. A device is in force while its signing key is. Position counts from one. A
-- writer names the position it has judged by, so that of two at once one is judged again.
create table device_statements (
    tenant_id      text collate "C" not null,
    approver_id    text collate "C" not null,
    position       integer not null,
    change         text not null,
    accepted_at    timestamptz not null,
    -- The device that is added or revoked, and the device that signed; neither for a reset.
    device_id      text collate "C",
    by_device      text collate "C",
    -- Of a device that is added.
    bundle         text,
    name           text,
    -- SHA-256 of the canonical statement, to recognise it.
    statement_hash bytea,
    -- The signed statement, as it was received.
    signed         json,
    constraint device_statements_pkey primary key (tenant_id, approver_id, position),
    constraint device_statements_change check (change in ('add', 'revoke', 'reset')),
    constraint device_statements_parts check (
        (change = 'reset') = (device_id is null) and (change = 'reset') = (by_device is null)
        and (change = 'reset') = (statement_hash is null) and (change = 'reset') = (signed is null)
        and (change = 'add') = (bundle is not null) and (change = 'add') = (name is not null)
    )
);

-- An enforcer, as a device introduces it to the other devices of its approver. A row counts while the key of its device is in
-- force, and while the pairing is the one that it was made under (nonce). A statement that ends one of them deletes its rows; a
-- row that was written at that very moment is not listed.
create table introductions (
    tenant_id     text collate "C" not null,
    approver_id   text collate "C" not null,
    enforcer_id   text collate "C" not null,
    device_id     text collate "C" not null,
    nonce         text collate "C" not null,
    -- When the enforcer was paired, as the device says. A newer one replaces an older one.
    introduced_at timestamptz not null,
    accepted_at   timestamptz not null,
    -- The signed introduction, as it was received.
    signed        json not null,
    constraint introductions_pkey primary key (tenant_id, approver_id, enforcer_id, device_id)
);

-- Links by which somebody gets a credential, once. The code itself is not stored.
create table invitations (
    tenant_id     text collate "C" not null,
    invitation_id text collate "C" not null,
    role          text not null,
    bound_id      text collate "C",
    -- For people.
    name          text,
    -- SHA-256 of the code.
    code_hash     bytea not null,
    created_at    timestamptz not null,
    created_by    text not null,
    expires_at    timestamptz not null,
    used_at       timestamptz,
    -- The credential that was made when it was used.
    credential_id text collate "C",
    withdrawn_at  timestamptz,
    constraint invitations_role check (role in ('enforcer', 'approver', 'admin')),
    constraint invitations_end check (
        (used_at is null) = (credential_id is null) and (used_at is null or withdrawn_at is null)
    )
);

-- A call that joins names only the code, which determines the tenant.
create index invitations_code on invitations (code_hash);
-- Retention looks across tenants.
create index invitations_due on invitations (expires_at);
alter table invitations add constraint invitations_pkey primary key (tenant_id, invitation_id);
