-- The devices of approvers, introductions of enforcers between them, and invitations to join.

-- Append-only: what devices of an approver signed about each other, in the order in which it was accepted, and the resets by
-- administrators between them. A device is in force while its signing key is. Position counts from one; whoever writes names
-- the position it has judged by, so that of two at once one is judged again.
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
alter table device_statements enable row level security;
create policy tenant_reach on device_statements using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

-- What a device tells the other devices of its approver about an enforcer. A row counts while the key of its device is in force, and
-- while the pairing is the one that it was made under (nonce): whatever ends one of them deletes its rows, and one that was
-- written at that very moment is not listed.
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
alter table introductions enable row level security;
create policy tenant_reach on introductions using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
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
-- Whoever joins names only the code, which determines the tenant.
create index invitations_code on invitations (code_hash);
-- Forgetting looks across tenants.
create index invitations_due on invitations (expires_at);
alter table invitations add constraint invitations_pkey primary key (tenant_id, invitation_id);
alter table invitations enable row level security;
create policy tenant_reach on invitations using (
    tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
    or (select current_setting('countersign.tenants', true) = '*')
);

-- docs/history.md says the same.
comment on table audit_events is 'What was done to tenants, credentials, invitations, keys, devices, pairings and pending exchanges. Rows are added, and forgotten after retention.audit_seconds, never changed.';
comment on column audit_events.actor is 'who did it: enforcer:, approver: or admin: and an id, operator, certificate holder, invitation holder or command line';
