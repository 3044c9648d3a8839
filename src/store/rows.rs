//! Between rows and columns: arrays for `unnest`, and values read back into types.

use std::collections::HashMap;

use uuid::Uuid;

use crate::protocol::artifact::Form;
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::TextId;
use crate::protocol::pairing::Nonce;
use crate::protocol::prompt::PromptStatus;
use crate::protocol::trace::TraceContext;

pub(super) fn texts<'a, R>(rows: &'a [R], column: impl Fn(&'a R) -> &'a str) -> Vec<&'a str> {
    rows.iter().map(column).collect()
}

/// A text column of a batch that may be null.
pub(super) fn optional<'a, R>(
    rows: &'a [R],
    column: impl Fn(&'a R) -> Option<&'a str>,
) -> Vec<Option<&'a str>> {
    rows.iter().map(column).collect()
}

/// Puts facts, which come in any order, into the order of the rows they belong to.
pub(super) fn in_order<F>(
    operations: impl Iterator<Item = Uuid>,
    facts: impl Iterator<Item = (Uuid, F)>,
) -> Result<Vec<F>, sqlx::Error> {
    let mut facts: HashMap<Uuid, F> = facts.collect();
    operations
        .map(|operation| facts.remove(&operation).ok_or(sqlx::Error::RowNotFound))
        .collect()
}

/// The error of a value that we would never have written.
pub(super) fn foreign(what: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("the database holds a {what} that is none").into())
}

pub(super) fn id<T: TextId>(text: &str) -> Result<T, sqlx::Error> {
    T::parse(text).ok_or_else(|| foreign("id"))
}

pub(super) fn nonce(text: &str) -> Result<Nonce, sqlx::Error> {
    Nonce::parse(text).ok_or_else(|| foreign("nonce"))
}

pub(super) fn hash(text: &str) -> Result<Sha256Hex, sqlx::Error> {
    Sha256Hex::parse(text).ok_or_else(|| foreign("hash"))
}

pub(super) fn form(text: &str) -> Result<Form, sqlx::Error> {
    Form::parse(text).ok_or_else(|| foreign("form"))
}

pub(super) fn prompt_status(text: &str) -> Result<PromptStatus, sqlx::Error> {
    PromptStatus::parse(text).ok_or_else(|| foreign("status"))
}

pub(super) fn state(text: &str) -> Result<ExchangeState, sqlx::Error> {
    ExchangeState::parse(text).ok_or_else(|| foreign("state"))
}

/// The trace context that two members of a stored `trace` make.
pub fn context(parent: Option<&str>, state: Option<&str>) -> Option<TraceContext> {
    TraceContext::parse(parent?, state)
}

/// A message's `trace`, with the context of its exchange's submission unless it has one of its own.
pub fn carrying(
    trace: Option<String>,
    parent: Option<&str>,
    state: Option<&str>,
) -> Option<String> {
    match context(parent, state) {
        Some(context) => Some(context.carried_by(trace)),
        None => trace,
    }
}
