-- The log of decisions and outcomes: a Merkle tree per tenant, as RFC 6962 and C2SP's tlog-tiles have it. Entries are hashes, so
-- retention leaves the tree as it is, and deletes only the rows that say which entry belongs to which exchange.

-- The newest state of each tree, signed with the key of log.key_file. A log that was restarted has the next epoch.
create table log_heads (
    tenant_id text collate "C" not null,
    epoch     integer not null,
    size      bigint not null,
    root      bytea not null,
    note      text not null,
    built_at  timestamptz not null,
    constraint log_heads_pkey primary key (tenant_id, epoch)
);

-- Up to 256 hashes each. A partial tile is the beginning of the stored one.
create table log_tiles (
    tenant_id  text collate "C" not null,
    epoch      integer not null,
    level      integer not null,
    tile_index bigint not null,
    hashes     bytea not null,
    constraint log_tiles_pkey primary key (tenant_id, epoch, level, tile_index)
);

-- Hashes do not compress.
alter table log_tiles alter column hashes set storage external;

-- Which entry belongs to which exchange. Also keeps an entry from being logged twice.
create table log_leaves (
    tenant_id  text collate "C" not null,
    request_id text collate "C" not null,
    kind       text collate "C" not null,
    epoch      integer not null,
    leaf       bigint not null,
    constraint log_leaves_pkey primary key (tenant_id, request_id, kind),
    constraint log_leaves_kind check (kind in ('decision', 'outcome'))
);

-- How far a sweep has got that goes on where it stopped.
alter table sweep_leases add column reached timestamptz;

do $$
declare
    named text;
begin
    foreach named in array array['log_heads', 'log_tiles', 'log_leaves'] loop
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
