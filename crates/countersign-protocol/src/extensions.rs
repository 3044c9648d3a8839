//! Checks extensions: their keys must be namespaced, and the requested actions of an artifact well
//! formed.

use super::decision::Verdict;
use super::json::{JsonNode, JsonValue};
use super::reader::{InvalidMember, MemberReader, ReadResult};

pub const MAX_ACTIONS: usize = 5;

/// Checks an artifact's extensions, with its requested actions under the key `requested_actions`.
pub(super) fn check_extensions(
    extensions: &MemberReader<'_, '_>,
    requested_actions: &str,
) -> ReadResult<()> {
    check_namespaced(extensions)?;
    match extensions.object().get(requested_actions) {
        Some(actions) => check_requested_actions(actions, &extensions.at(requested_actions)),
        None => Ok(()),
    }
}

pub(super) fn check_namespaced(extensions: &MemberReader<'_, '_>) -> ReadResult<()> {
    let mut members = extensions.object().iter();
    match members.find(|member| !member.name.contains('.')) {
        None => Ok(()),
        Some(member) => Err(extensions.refusal(&member.name, "a namespaced key, containing a dot")),
    }
}

fn check_requested_actions(node: &JsonNode<'_>, pointer: &str) -> ReadResult<()> {
    let mut extension = MemberReader::new(node, pointer)?;
    let version = extension.required("version", "1")?;
    // 1.0 is the same JSON number as 1.
    if version.value != JsonValue::Number(1.0) {
        return Err(InvalidMember::unsupported(extension.at("version"), "1"));
    }
    let actions = extension.items("actions", MAX_ACTIONS, "actions")?;
    let mut seen: Vec<String> = Vec::with_capacity(actions.len());
    for (index, action) in actions.iter().enumerate() {
        let at = format!("{}/{index}", extension.at("actions"));
        let id = check_action(action, &at)?.to_lowercase();
        if seen.contains(&id) {
            let expected = "an id unlike the others, ignoring case";
            return Err(InvalidMember::shape(format!("{at}/id"), expected));
        }
        seen.push(id);
    }
    extension.finish()
}

fn check_action<'n>(node: &'n JsonNode<'_>, pointer: &str) -> ReadResult<&'n str> {
    let mut action = MemberReader::new(node, pointer)?;
    let id = action.nonempty_str("id")?;
    action.nonempty_str("caption")?;
    if action.optional_str("style")?.is_some() {
        action.one_of("style", &["primary", "secondary", "danger"])?;
    }
    action.word::<Verdict>("decision")?;
    action.finish()?;
    Ok(id)
}
