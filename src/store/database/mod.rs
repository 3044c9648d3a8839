//! Connections, pools, batches, the schema: everything that knows PostgreSQL and no subject.

pub mod batch;
pub mod batch_gate;
pub mod batch_statement;
pub mod busy;
pub(in crate::store) mod clock_offset;
pub mod connect;
pub(in crate::store) mod intake;
pub(in crate::store) mod interval;
pub mod lease;
pub mod listing;
pub mod notify;
pub mod pool;
pub(in crate::store) mod pools;
pub(in crate::store) mod pulse;
pub(in crate::store) mod retry;
pub(in crate::store) mod rows;
pub mod schema;
pub mod server_check;
pub mod tenant_scope;
