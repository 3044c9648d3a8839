//! Where an agent works. Decisions repeat `repoRef` in plain, so a sealed artifact has a salted hash there and the text within, and the
//! gateway learns neither machine nor directory.

use serde_json::{Map, Value, json};

use super::encoding::encode;
use super::error::Error;
use super::random::{RandomSource, draw};
use crate::protocol::artifact::MAX_WORD_CHARS;
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::json::Node;
use crate::protocol::reader::{Invalid, Reader};

/// The extension that holds the text.
pub const REPOSITORY: &str = "countersign.repository";

/// Adds `repoRef` and the text behind it to the members of an artifact.
pub fn hide_repository(
    members: &mut Map<String, Value>,
    text: &str,
    random: &mut impl RandomSource,
) -> Result<(), Error> {
    let salt = encode(draw::<16>(random)?.as_slice());
    members.insert("repoRef".into(), hash_of(&salt, text).into());
    let mut extensions = match members.remove("extensions") {
        Some(Value::Object(extensions)) => extensions,
        _ => Map::new(),
    };
    extensions.insert(REPOSITORY.into(), json!({ "salt": salt, "text": text }));
    members.insert("extensions".into(), extensions.into());
    Ok(())
}

/// The text behind `repo_ref`, if the extensions of an artifact have one. `Err` if it is another's.
pub(super) fn read_repository(
    extensions: Option<&Node<'_>>,
    repo_ref: &str,
) -> Result<Option<String>, Invalid> {
    let Some(extensions) = extensions else {
        return Ok(None);
    };
    let mut extensions = Reader::new(extensions, "/extensions")?;
    let Some(hidden) = extensions.optional_nested(REPOSITORY)? else {
        return Ok(None);
    };
    let mut hidden = Reader::new(hidden, "/extensions/countersign.repository")?;
    let salt = hidden.bounded_str("salt", 22, 22)?;
    let text = hidden.bounded_str("text", 0, MAX_WORD_CHARS)?;
    hidden.finish()?;
    if hash_of(salt, text) == repo_ref {
        Ok(Some(text.to_owned()))
    } else {
        Err(Invalid::shape("/repoRef", "the hash of the repository"))
    }
}

fn hash_of(salt: &str, text: &str) -> String {
    let hashed = format!("countersign repository v1\n{salt}\n{text}");
    format!("sha256:{}", Sha256Hex::of(hashed.as_bytes()))
}
