//! Telemetry for operators: metrics that move as they should, under labels that callers cannot
//! multiply, and traces that hold an exchange together across nodes.

mod contexts;
mod documents;
mod logs;
mod metrics;
mod redelivery;
mod traces;
mod trouble;
