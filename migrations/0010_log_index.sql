-- no-transaction
-- For the log, which reads the newest events of all tenants. A transaction would block every exchange while the index is built.
create index concurrently if not exists exchange_events_at on exchange_events using brin (at);
