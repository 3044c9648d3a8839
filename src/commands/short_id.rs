//! Ids as people read and type them. The ids of requests begin with the time, so those of one
//! minute begin alike: lists print the shortest end that is unique.

use countersign::client::{ClientError, visible};

const SHORT_CHARS: usize = 8;

/// The shortest end of `id` that no other of `ids` has, of eight characters or more.
pub fn short_id<'i>(id: &'i str, ids: &[impl AsRef<str>]) -> &'i str {
    let starts = id.char_indices().rev().skip(SHORT_CHARS - 1);
    let mut ends = starts.map(|(start, _)| &id[start..]);
    let is_unique = |end: &&str| {
        let mut others = ids.iter().map(AsRef::as_ref).filter(|other| *other != id);
        !others.any(|other| other.ends_with(end))
    };
    ends.find(is_unique).unwrap_or(id)
}

/// The only one of `ids` that is, ends with or begins with `text`; none if there is no such id.
pub fn find_id<'i>(
    text: &str,
    ids: impl Iterator<Item = &'i str>,
) -> Result<Option<&'i str>, ClientError> {
    if text.is_empty() {
        return Err(ClientError::Choice("the id is empty"));
    }
    let mut found = Vec::new();
    for id in ids {
        if id == text {
            return Ok(Some(id));
        }
        if id.ends_with(text) || id.starts_with(text) {
            found.push(id);
        }
    }
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let lines = several.iter().map(|id| format!("\n  {}", visible(id)));
            let lines: String = lines.collect();
            Err(several_match(text, &lines))
        }
    }
}

/// The error for an id that could mean each of these `lines`.
pub fn several_match(text: &str, lines: &str) -> ClientError {
    let text = visible(text);
    ClientError::Ambiguous(format!("{text} is not unique; type more of the id:{lines}"))
}
