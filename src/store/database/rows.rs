//! Between rows and columns: arrays for `unnest`, and facts put back in the order of their rows.

use std::collections::HashMap;

use crate::protocol::id::OperationId;
use crate::protocol::trace::TraceContext;

/// One column of a batch, to be sent as an array.
pub(in crate::store) fn column<'a, R, C>(rows: &'a [R], value: impl Fn(&'a R) -> C) -> Vec<C> {
    rows.iter().map(value).collect()
}

/// Puts facts, which come in any order, into the order of the operations they belong to.
pub(in crate::store) fn in_order<F>(
    operations: impl Iterator<Item = OperationId>,
    facts: impl IntoIterator<Item = (OperationId, F)>,
) -> sqlx::Result<Vec<F>> {
    let mut facts: HashMap<_, F> = facts.into_iter().collect();
    operations
        .map(|operation| facts.remove(&operation).ok_or(sqlx::Error::RowNotFound))
        .collect()
}

/// The facts of each of `count` rows, which `with ordinality` numbers from one.
pub(in crate::store) fn by_row<F>(
    count: usize,
    facts: impl IntoIterator<Item = (i64, F)>,
) -> sqlx::Result<Vec<Vec<F>>> {
    let mut sorted: Vec<Vec<F>> = std::iter::repeat_with(Vec::new).take(count).collect();
    for (number, fact) in facts {
        row_mut(&mut sorted, number)?.push(fact);
    }
    Ok(sorted)
}

/// The fact of the row that `with ordinality` gave this number.
pub(in crate::store) fn row_mut<F>(facts: &mut [F], number: i64) -> sqlx::Result<&mut F> {
    let row = usize::try_from(number - 1).ok();
    let row = row.and_then(|row| facts.get_mut(row));
    row.ok_or(sqlx::Error::RowNotFound)
}

/// The trace context in two members of a stored `trace`.
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
