//! The entries of an agent's JSON configuration: ours are put in, brought up to date or taken out, those of others stay.

use countersign::agent::Agent;
use countersign::agent::edit::EditError;
use countersign::agent::edit::json::{Document, Fresh, Left, Step};
use serde::Serialize;
use serde_json::Value;

use super::shell::is_ours;

/// The element of an event's list.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ListElement {
    Group {
        #[serde(skip_serializing_if = "Option::is_none")]
        matcher: Option<&'static str>,
        hooks: [HookCommand; 1],
    },
    Single(HookCommand),
}

/// A hook, with the members that one or another agent knows.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct HookCommand {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_closed: Option<bool>,
}

pub struct HookEntry {
    pub event: &'static str,
    pub element: ListElement,
}

/// Where one of ours is.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundHook {
    pub event: String,
    pub index: usize,
    /// The place in its group, if the group has others too.
    pub inner: Option<usize>,
}

impl FoundHook {
    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![
            Step::Key("hooks".to_owned()),
            Step::Key(self.event.clone()),
            Step::Index(self.index),
        ];
        if let Some(inner) = self.inner {
            steps.extend([Step::Key("hooks".to_owned()), Step::Index(inner)]);
        }
        steps
    }

    pub fn element<'v>(&self, settings: &'v Value) -> &'v Value {
        &settings["hooks"][&self.event][self.index]
    }
}

/// All of ours in the settings of an agent.
pub fn find(agent: Agent, settings: &Value) -> Vec<FoundHook> {
    let mut found = Vec::new();
    let events = settings["hooks"].as_object().into_iter().flatten();
    for (event, elements) in events {
        for (index, element) in elements.as_array().into_iter().flatten().enumerate() {
            let place = |inner| FoundHook {
                event: event.clone(),
                index,
                inner,
            };
            let Some(inner) = element["hooks"].as_array() else {
                if is_ours(agent, element) {
                    found.push(place(None));
                }
                continue;
            };
            let ours = inner
                .iter()
                .enumerate()
                .filter(|(_, hook)| is_ours(agent, hook));
            let ours: Vec<_> = ours.map(|(index, _)| index).collect();
            if !ours.is_empty() && ours.len() == inner.len() {
                found.push(place(None));
            } else {
                found.extend(ours.into_iter().map(|index| place(Some(index))));
            }
        }
    }
    found
}

/// Makes our entries these, and no others.
pub fn install(
    document: &mut Document,
    agent: Agent,
    entries: &[HookEntry],
) -> Result<(), EditError> {
    let unprintable = |error: serde_json::Error| EditError {
        line: 1,
        problem: error.to_string(),
    };
    let mut kept = Vec::new();
    let settings = document.value()?;
    for entry in entries {
        let wanted = serde_json::to_value(&entry.element).map_err(unprintable)?;
        let ours = find(agent, &settings).into_iter();
        let ours = ours.filter(|found| found.event == entry.event && found.inner.is_none());
        let ours: Vec<_> = ours.collect();
        let same = ours
            .iter()
            .find(|found| *found.element(&settings) == wanted);
        let place = same.or(ours.first()).cloned();
        if let (None, Some(place)) = (same, &place) {
            document.replace(
                &place.steps(),
                &Fresh::of(&entry.element).map_err(unprintable)?,
            )?;
        }
        kept.push(place);
    }
    // From the last one, so that the places before it stay the same.
    for found in find(agent, &settings).into_iter().rev() {
        if !kept.contains(&Some(found.clone())) {
            document.remove(&found.steps())?;
        }
    }
    for (entry, place) in entries.iter().zip(&kept) {
        if place.is_none() {
            let fresh = Fresh::of(&entry.element).map_err(unprintable)?;
            document.append(&["hooks", entry.event], &fresh)?;
        }
    }
    Ok(())
}

/// Takes out all of ours.
pub fn remove(document: &mut Document, agent: Agent) -> Result<Left, EditError> {
    let mut left = Left::Something;
    for found in find(agent, &document.value()?).into_iter().rev() {
        left = document.remove(&found.steps())?;
    }
    Ok(left)
}

/// Sets a member of the settings, or of the object `path` in them.
pub fn set(
    document: &mut Document,
    path: &[&str],
    name: &str,
    value: &Value,
) -> Result<(), EditError> {
    let settings = document.value()?;
    let object = path.iter().fold(&settings, |value, key| &value[*key]);
    let fresh = Fresh::of(value).map_err(|error| EditError {
        line: 1,
        problem: error.to_string(),
    })?;
    match object.get(name) {
        Some(found) if found == value => Ok(()),
        Some(_) => {
            let steps = path.iter().chain([&name]);
            let steps: Vec<_> = steps.map(|key| Step::Key((*key).to_owned())).collect();
            document.replace(&steps, &fresh)
        }
        None => document.insert(path, name, &fresh),
    }
}

/// Takes out a member that makes sense only with hooks, if there are none left.
pub fn unset(
    document: &mut Document,
    path: &[&str],
    name: &str,
    value: &Value,
) -> Result<Left, EditError> {
    let settings = document.value()?;
    let hooks = settings["hooks"].as_object();
    let object = path.iter().fold(&settings, |value, key| &value[*key]);
    if hooks.is_some_and(|hooks| !hooks.is_empty()) || object.get(name) != Some(value) {
        return Ok(Left::Something);
    }
    let steps = path.iter().chain([&name]);
    let steps: Vec<_> = steps.map(|key| Step::Key((*key).to_owned())).collect();
    document.remove(&steps)
}
