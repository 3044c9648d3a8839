//! Checks extensions: their keys must be namespaced, and the requested actions of an artifact well formed.

use super::json::{Node, Value};
use super::reader::{Invalid, Reader};

pub const MAX_ACTIONS: usize = 5;

/// Checks an artifact's extensions, with its requested actions under the key `requested_actions`.
pub(super) fn check_extensions(node: &Node<'_>, requested_actions: &str) -> Result<(), Invalid> {
    let extensions = Reader::new(node, "/body/extensions")?;
    check_namespaced(&extensions)?;
    match extensions.object().get(requested_actions) {
        Some(actions) => check_requested_actions(actions, &extensions.at(requested_actions)),
        None => Ok(()),
    }
}

pub(super) fn check_namespaced(extensions: &Reader<'_, '_>) -> Result<(), Invalid> {
    let mut members = extensions.object().iter();
    match members.find(|member| !member.name.contains('.')) {
        None => Ok(()),
        Some(member) => Err(Invalid::shape(
            extensions.at(&member.name),
            "a namespaced key, containing a dot",
        )),
    }
}

fn check_requested_actions(node: &Node<'_>, pointer: &str) -> Result<(), Invalid> {
    let mut extension = Reader::new(node, pointer)?;
    let version = extension.required("version", "1")?;
    // 1.0 is the same JSON number as 1.
    if version.value != Value::Number(1.0) {
        return Err(Invalid::unsupported(extension.at("version"), "1"));
    }
    let expected = format!("an array of 1 to {MAX_ACTIONS} actions");
    let actions = match &extension.required("actions", "an array")?.value {
        Value::Array(actions) if (1..=MAX_ACTIONS).contains(&actions.len()) => actions,
        _ => return Err(Invalid::shape(extension.at("actions"), expected)),
    };
    let mut seen: Vec<String> = Vec::with_capacity(actions.len());
    for (index, action) in actions.iter().enumerate() {
        let at = format!("{}/{index}", extension.at("actions"));
        let id = check_action(action, &at)?.to_lowercase();
        if seen.contains(&id) {
            let expected = "an id unlike the others, ignoring case";
            return Err(Invalid::shape(format!("{at}/id"), expected));
        }
        seen.push(id);
    }
    extension.finish()
}

fn check_action<'n>(node: &'n Node<'_>, pointer: &str) -> Result<&'n str, Invalid> {
    let mut action = Reader::new(node, pointer)?;
    let (id, caption) = (action.str("id")?, action.str("caption")?);
    action.check_nonempty("id", id)?;
    action.check_nonempty("caption", caption)?;
    if action.optional_str("style")?.is_some() {
        action.one_of("style", &["primary", "secondary", "danger"])?;
    }
    action.one_of("decision", &["approve", "reject"])?;
    action.finish()?;
    Ok(id)
}
