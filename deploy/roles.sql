-- Three roles: one that owns the tables and migrates, one for the nodes, one that only reads the history.
--
--   psql -v owner=cs_owner -v application=cs_app -v reader=cs_reader -v tenants=TENANT,TENANT \
--        -f deploy/roles.sql postgres://ADMINISTRATOR@HOST/DATABASE
--
-- Run it before the first migration, and again after every one; again with another reader for each further reader. It
-- can be repeated, also while nodes run. Run it as a superuser, or always as the same role that may create roles and owns
-- the database. The database is Countersign's own: every table, domain and function in its schema public goes to the owner. Roles are
-- made without a password: \password sets one.
--
-- tenants: those the reader is confined to, separated by commas; * for all of them; by default none.
-- keep_history, keep_audit: for how long exchanges with their history, and the audit, are kept at least, whatever a node's
--   configuration says: a node that somebody has taken over cannot remove younger rows. At first 90 and 400 days, as
--   retention.exchange_seconds and retention.audit_seconds are by default; later runs leave them as they are unless given.

\set ON_ERROR_STOP on
\if :{?owner}
\else
\set owner countersign_owner
\endif
\if :{?application}
\else
\set application countersign_application
\endif
\if :{?reader}
\else
\set reader countersign_reader
\endif
\if :{?tenants}
\else
\set tenants ''
\endif
\if :{?keep_history}
\else
\set keep_history ''
\endif
\if :{?keep_audit}
\else
\set keep_audit ''
\endif

begin;
-- Policies lock their tables for an instant. A long wait for a lock would block every later statement.
set lock_timeout = '5s';

select format('create role %I login', r.name)
  from (values (:'owner'), (:'application'), (:'reader')) as r (name)
 where not exists (select from pg_roles p where p.rolname = r.name)
\gexec
-- A role that is no superuser needs the owner's rights to give it tables. Having created it is not enough.
select format('grant %I to current_user', :'owner')
 where not pg_has_role(current_user, :'owner', 'usage')
\gexec

select format('grant connect on database %I to %I, %I, %I', current_database(), :'owner', :'application', :'reader')
\gexec
revoke create on schema public from public;
grant usage, create on schema public to :"owner";
grant usage on schema public to :"application", :"reader";

create temporary table our_tables as
select c.relname as name, c.relkind = 'v' as is_view, pg_get_userbyid(c.relowner) as owner
  from pg_class c
 where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v')
   and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e');

-- The owner migrates. Row-level security does not apply to it.
select format('alter table public.%I owner to %I', t.name, :'owner')
  from our_tables t
 where t.owner <> :'owner'
\gexec

select format('alter domain public.%I owner to %I', t.typname, :'owner')
  from pg_type t
 where t.typnamespace = 'public'::regnamespace and t.typtype = 'd' and pg_get_userbyid(t.typowner) <> :'owner'
   and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e')
\gexec

create temporary table our_functions as
select p.oid::regprocedure as name, pg_get_userbyid(p.proowner) as owner
  from pg_proc p
 where p.pronamespace = 'public'::regnamespace and p.prokind = 'f'
   and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e');
select format('alter function %s owner to %I', f.name, :'owner')
  from our_functions f
 where f.owner <> :'owner'
\gexec

-- The application has only the rights that the nodes' statements need. It may only add to history and audit. Functions with
-- the owner's rights delete from them, and keep rows that are younger than the floors below.
select format('revoke all on public.%I from %I', t.name, :'application') from our_tables t
\gexec
select format('grant %s on public.%I to %I',
              case when t.name in ('_sqlx_migrations', 'retention_floors') then 'select'
                   when t.name in ('exchange_events', 'audit_events', 'device_statements', 'team_states') then 'select, insert'
                   when t.name in ('tenants', 'credentials', 'signing_keys', 'log_heads', 'log_tiles') then 'select, insert, update'
                   when t.name in ('exchange_payloads', 'prompt_payloads', 'decision_nonces', 'log_leaves') then 'select, insert, delete'
                   else 'select, insert, update, delete' end,
              t.name, :'application')
  from our_tables t
 where not t.is_view
\gexec
select format('revoke all on function %s from public', f.name) from our_functions f
\gexec
select format('grant execute on function %s to %I', f.name, :'application') from our_functions f
\gexec
-- For the objects of the next migration, so that nodes can use them at once.
alter default privileges for role :"owner" in schema public
    grant select, insert, update, delete on tables to :"application";
alter default privileges for role :"owner" revoke execute on functions from public;
alter default privileges for role :"owner" in schema public grant execute on functions to :"application";

select format('insert into public.retention_floors as f (history, keep) values (%L, coalesce(nullif(%L, %L)::interval, %L))
               on conflict on constraint retention_floors_pkey do update set keep = excluded.keep where %L <> %L',
              f.history, f.given, '', f.otherwise, f.given, '')
  from our_tables t
 cross join (values ('exchange_events', :'keep_history', '90 days'), ('audit_events', :'keep_audit', '400 days'))
       as f (history, given, otherwise)
 where t.name = 'retention_floors'
\gexec

-- The reader sees the views and their tables, the events and the audit; no payload, no hash of a secret. So tables are listed,
-- and it has no rights by default.
create temporary table history as
select t.name, t.is_view
  from our_tables t
 where t.name in ('exchange_history', 'pending_inbox', 'decision_latency', 'exchanges', 'inbox_items', 'exchange_events',
                  'audit_events', 'tenants');
select format('revoke all on public.%I from %I', t.name, :'reader') from our_tables t
\gexec
commit;

-- The reader's tenants. One policy lets it see rows, independently of its session's settings. The other, a restrictive one,
-- limits it to its tenants. Policies of an earlier run are dropped first. Each statement is a transaction, since one that holds
-- several tables could deadlock with a node. Until all are in place the reader may read nothing.
select format('drop policy %I on public.%I', p.policyname, p.tablename)
  from pg_policies p
 where p.schemaname = 'public' and p.roles = array[:'reader'::name]
\gexec
select format('create policy %I on public.%I as %s for select to %I using (%s)',
              (p.prefix || :'reader')::name, h.name, p.kind, :'reader',
              case when p.kind = 'permissive' or :'tenants' = '*' then 'true'
                   else format('tenant_id = any (%L::text[])', named.tenants) end)
  from history h
 cross join (values ('sees_', 'permissive'), ('only_', 'restrictive')) as p (prefix, kind)
 cross join (select coalesce(array_agg(trim(name)), '{}') as tenants
               from unnest(string_to_array(:'tenants', ',')) as name) as named
 where not h.is_view
\gexec
select format('grant select on public.%I to %I', h.name, :'reader') from history h
\gexec
