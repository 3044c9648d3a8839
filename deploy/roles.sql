-- Three roles: one that owns the tables and migrates, one for the nodes, one that only reads the history.
--
--   psql -v owner=cs_owner -v application=cs_app -v reader=cs_reader -v tenants=TENANT,TENANT \
--        -f deploy/roles.sql postgres://ADMINISTRATOR@HOST/DATABASE
--
-- Run it before the first migration, and again after every one; again with another reader for each further reader. Twice is
-- no harm, nor are nodes that run meanwhile. Run it as a superuser, or always as the same role that may create roles and owns
-- the database. The database is Countersign's own: every table, domain and function in its schema public goes to the owner. Roles are
-- made without a password: \password sets one.
--
-- tenants: those the reader is confined to, separated by commas; * for all of them; by default none.

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

begin;
-- Policies need their tables for an instant; whoever must wait for long holds up everyone behind.
set lock_timeout = '5s';

select format('create role %I login', r.name)
  from (values (:'owner'), (:'application'), (:'reader')) as r (name)
 where not exists (select from pg_roles p where p.rolname = r.name)
\gexec
-- Whoever is no superuser must have the owner's rights to give it tables. Having made it is not enough.
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

-- The owner: it migrates, and row-level security does not bind it.
select format('alter table public.%I owner to %I', t.name, :'owner')
  from our_tables t
 where t.owner <> :'owner'
\gexec

select format('alter domain public.%I owner to %I', t.typname, :'owner')
  from pg_type t
 where t.typnamespace = 'public'::regnamespace and t.typtype = 'd' and pg_get_userbyid(t.typowner) <> :'owner'
   and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e')
\gexec

select format('alter function %s owner to %I', p.oid::regprocedure, :'owner')
  from pg_proc p
 where p.pronamespace = 'public'::regnamespace and p.prokind = 'f' and pg_get_userbyid(p.proowner) <> :'owner'
   and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
\gexec

-- The application: what the nodes' statements need, and nothing more. History is written and forgotten, never rewritten.
select format('revoke all on public.%I from %I', t.name, :'application') from our_tables t
\gexec
select format('grant %s on public.%I to %I',
              case when t.name = '_sqlx_migrations' then 'select'
                   when t.name in ('tenants', 'credentials', 'signing_keys') then 'select, insert, update'
                   when t.name in ('exchange_events', 'exchange_payloads', 'prompt_payloads', 'audit_events')
                   then 'select, insert, delete'
                   else 'select, insert, update, delete' end,
              t.name, :'application')
  from our_tables t
 where not t.is_view
\gexec
-- Tables of the next migration, so that nodes can use them at once.
alter default privileges for role :"owner" in schema public
    grant select, insert, update, delete on tables to :"application";

-- The reader: the views and what they read, the events and the audit; no payload, no hash of a secret. Hence a list, and
-- nothing by default.
create temporary table history as
select t.name, t.is_view
  from our_tables t
 where t.name in ('exchange_history', 'pending_inbox', 'decision_latency', 'exchanges', 'inbox_items', 'exchange_events',
                  'audit_events', 'tenants');
select format('revoke all on public.%I from %I', t.name, :'reader') from our_tables t
\gexec
commit;

-- Its tenants. One policy lets it see rows, whatever its session sets or does not; the other, which nothing gets around, only
-- these. What an earlier run said goes first. Each statement is a transaction, since one that holds several tables could
-- deadlock with a node. Until all are in place the reader may read nothing.
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
