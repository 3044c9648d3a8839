-- Teams: chains of signed states, which the gateway carries, and the pairings that follow from them; see docs/protocol.md.

-- Append-only: the states of a team from 0 on, each complete, as they were received. Clients believe their signatures.
create table team_states (
    tenant_id    text collate "C" not null,
    team_id      text collate "C" not null,
    seq          integer not null,
    -- SHA-256 of the canonical state, in hex.
    digest       text collate "C" not null,
    -- As in the state: lists do not parse it.
    name         text not null,
    -- The approver who sent it; of the first state, the one who has created the team.
    published_by text collate "C" not null,
    signed       json not null,
    accepted_at  timestamptz not null,
    constraint team_states_pkey primary key (tenant_id, team_id, seq)
);

-- The teams that an approver has created are counted.
create index team_states_created on team_states (tenant_id, published_by) where seq = 0;

-- The people of a team's newest state, stand-ins included: who may read it, and whom its enforcers are paired with.
create table team_seats (
    tenant_id   text collate "C" not null,
    team_id     text collate "C" not null,
    approver_id text collate "C" not null,
    seat        text not null,
    -- Since when the person has been in the team, on whichever kind of seat.
    seated_at   timestamptz not null,
    constraint team_seats_pkey primary key (tenant_id, team_id, approver_id),
    constraint team_seats_seat check (seat in ('owner', 'member', 'standIn'))
);

create index team_seats_of_approver on team_seats (tenant_id, approver_id, seated_at, team_id);

-- An invitation by a person of the team, and the invited person's consent once there is one. Deleted when the invited person leaves.
create table team_consents (
    tenant_id   text collate "C" not null,
    team_id     text collate "C" not null,
    invite_id   text collate "C" not null,
    approver_id text collate "C" not null,
    invited_by  text collate "C" not null,
    invited_at  timestamptz not null,
    -- The signed consent, as it was received.
    signed      json,
    constraint team_consents_pkey primary key (tenant_id, team_id, invite_id)
);

create index team_consents_of_approver on team_consents (tenant_id, team_id, approver_id);

-- Retention looks across tenants.
create index team_consents_due on team_consents (invited_at);

-- An enforcer that an owner has paired with a team. The routing token is kept only as its hash.
create table team_pairings (
    tenant_id      text collate "C" not null,
    team_id        text collate "C" not null,
    enforcer_id    text collate "C" not null,
    -- The attempt at pairing that it came from, and the owner who completed it.
    nonce          text collate "C" not null,
    approver_id    text collate "C" not null,
    token_hash     bytea not null,
    enforcer_label text,
    workspace_name text,
    enforcer_key   text,
    constraint team_pairings_pkey primary key (tenant_id, team_id, enforcer_id),
    constraint team_pairings_nonce_key unique (tenant_id, nonce)
);

create index team_pairings_of_enforcer on team_pairings (tenant_id, enforcer_id, team_id);

-- An enforcer, as an owner's device introduces it to the team. A row counts while the pairing is the one that it was made under.
create table team_introductions (
    tenant_id     text collate "C" not null,
    team_id       text collate "C" not null,
    enforcer_id   text collate "C" not null,
    device_id     text collate "C" not null,
    approver_id   text collate "C" not null,
    nonce         text collate "C" not null,
    introduced_at timestamptz not null,
    -- The signed introduction, as it was received.
    signed        json not null,
    constraint team_introductions_pkey primary key (tenant_id, team_id, enforcer_id, device_id)
);

-- The team that a pairing follows from; null if the two were paired directly. Such a row has no routing token.
alter table pairings add column team_id text collate "C";

-- As in 0004.
do $$
declare
    named text;
begin
    foreach named in array array['team_states', 'team_seats', 'team_consents', 'team_pairings', 'team_introductions'] loop
        execute format('alter table %I enable row level security', named);
        execute format($policy$
            create policy tenant_reach on %I using (
                tenant_id = any ((select string_to_array(current_setting('countersign.tenants', true), E'\n'))::text[])
                or (select current_setting('countersign.tenants', true) = '*')
            )
        $policy$, named);
    end loop;
end
$$;
