-- Push: which node holds which channel, and how often a message was offered where.

-- A node's heartbeat is the lease of all its channels.
create table nodes (
    node_id      uuid not null,
    name         text not null,
    started_at   timestamptz not null,
    heartbeat_at timestamptz not null,
    constraint nodes_pkey primary key (node_id)
);

create table channels (
    tenant_id  text collate "C" not null,
    kind       text collate "C" not null,
    identity   text collate "C" not null,
    channel_id uuid not null,
    node_id    uuid not null,
    transport  text not null,
    opened_at  timestamptz not null,
    active     boolean not null default true,
    constraint channels_pkey primary key (tenant_id, kind, identity, channel_id),
    constraint channels_kind check (kind in ('enforcer', 'approver')),
    constraint channels_transport check (transport in ('websocket', 'sse'))
);

create index channels_by_node on channels (node_id);

alter table messages
    add column target_channel  uuid,
    add column offers          integer not null default 0,
    add column offered_at      timestamptz,
    add column next_attempt_at timestamptz;
