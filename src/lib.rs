//! Countersign: an approval gateway for AI agents. Several identical, stateless nodes on one PostgreSQL.
//!
//! # The map
//!
//! | room | what lives there |
//! |---|---|
//! | [`protocol`] | pure types and rules: strict JSON, canonical form, signatures, envelopes, the state machine |
//! | [`gateway`] | the use cases, one function each: submit, decide, deliver, push, withdraw, refresh, inbox, pair, presence, prompt, session, platform, audit, sweep |
//! | [`store`] | all SQL: guarded statements that report facts, natural batching, the pools, the schema |
//! | [`wake`] | who must look: waiters on this node, hints between nodes, the net under both |
//! | [`http`] | transport: REST, WebSocket, event streams, authentication, framing of answers and refusals, TLS, the accept loop, and the document of all that |
//! | [`outbound`] | calls to other services, bounded in time and size: an issuer's keys, introspection |
//! | [`app`] | builds a node and runs it until stopped, in two stages: drain, then end |
//! | `dev`, `commands` | the binary's own: the command line, and `countersign dev` with its private PostgreSQL and demo tenant |
//! | [`telemetry`] | what operators see: logs, each node's metrics, traces, and their export |
//! | [`config`], [`clock`], [`jitter`] | what every room shares |
//!
//! # The direction
//!
//! A call goes `http` → `gateway` → `store`, and its news from `gateway` to `wake`. `protocol` is used by all and uses
//! nothing: no I/O, no clock, no database. Rows are the truth, a wake is only a hint, and a use case, once begun, runs to
//! its end whatever the client does.
//!
//! # How a transition happens
//!
//! 1. What needs no database is judged by `protocol`: shape, hash, signature, rights.
//! 2. One statement in `store` locks, looks at the database's clock, writes if and only if the state allows, and reports
//!    facts. Concurrent calls of a kind share a statement: while one batch commits, the next fills.
//! 3. A pure `judge_*` function turns the facts into an outcome.
//! 4. After the commit, `wake` names who must look: waiters here at once, other nodes by a coalesced NOTIFY, and whoever
//!    is missed by the net.

#![forbid(unsafe_code)]

pub mod app;
pub mod clock;
pub mod config;
pub mod gateway;
pub mod http;
pub mod jitter;
pub mod outbound;
pub mod protocol;
pub mod store;
pub mod telemetry;
pub mod wake;
