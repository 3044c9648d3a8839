//! Countersign: an approval gateway for AI agents. Several identical, stateless nodes on one PostgreSQL.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`protocol`] | the crate `countersign-protocol`: pure types and rules: strict JSON, canonical form, signatures, envelopes, the state machine, the error table |
//! | [`e2e`] | the crate `countersign-e2e`: pure end-to-end cryptography of the clients: bundles, pairing, devices, encryption, signed decisions |
//! | [`agent`] | the crate `countersign-agents`: one file per agent, its hook, settings and known holes; the policy, what an approver is shown |
//! | [`client`] | the crate `countersign-client`, both clients: calls to any node, profiles, the enforcer, the approver |
//! | [`gateway`] | the use cases by subject: exchanges, channels, presence, pairings, prompts, sessions, platform, authentication |
//! | [`store`] | all SQL, by the same subjects: guarded statements that report facts, batching, the pools, the schema |
//! | [`wake`] | wakes waiters on this node, notifications between nodes, and a fallback poll |
//! | [`http`] | transport: REST, WebSocket, event streams, TLS, the accept loop, and the documents of the API |
//! | [`page`] | the page of the approvers, embedded: its files, their version, what it may do in a browser |
//! | [`outbound`] | calls to other services, bounded in time and size: an issuer's keys, introspection, a collector |
//! | [`app`] | builds a node and runs it until stopped, in two stages: drain, then end |
//! | `dev`, `commands` | the binary's own: the command line, and `countersign dev` with its private PostgreSQL |
//! | [`telemetry`] | logs, metrics, traces, and their export |
//! | [`config`], [`clock`], [`jitter`], [`short_lock`] | shared by all |
//!
//! # Direction
//!
//! A call goes `http` → `gateway` → `store`; after the commit `gateway` tells `wake`. `protocol` is used by all and uses
//! nothing: no I/O, no clock, no database. Rows are the truth and a wake is only a hint. A use case, once begun, runs to
//! its end even if the client hangs up.
//!
//! # A state transition
//!
//! 1. `protocol` judges what needs no database: shape, hash, signature, rights.
//! 2. One statement in `store` locks, reads the database's clock, writes if and only if the state allows, and reports
//!    facts. Concurrent calls of a kind share a statement: while one batch commits, the next fills.
//! 3. A pure `judge_*` function turns the facts into an outcome.
//! 4. After the commit, `wake` wakes waiters on this node at once and other nodes by a coalesced NOTIFY. The fallback poll
//!    finds whatever both miss.
//!
//! `docs/architecture.md` follows one submission through the files.

#![forbid(unsafe_code)]

pub use countersign_agents as agent;
pub use countersign_client as client;
pub use countersign_e2e as e2e;
pub use countersign_protocol as protocol;
pub use countersign_protocol::{clock, jitter};

#[cfg(feature = "gateway")]
pub mod app;
#[cfg(feature = "gateway")]
pub mod config;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "gateway")]
pub mod http;
#[cfg(feature = "gateway")]
pub mod outbound;
#[cfg(feature = "gateway")]
pub mod page;
#[cfg(feature = "gateway")]
pub mod short_lock;
#[cfg(feature = "gateway")]
pub mod store;
#[cfg(feature = "gateway")]
pub mod telemetry;
#[cfg(feature = "gateway")]
pub mod wake;
