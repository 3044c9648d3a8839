//! Our hooks in an agent's JSON settings: put in, brought up to date or taken out. Those of others
//! stay.

use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::file::{self, FileChange, InstallRefusal};
use super::places::InstallScope;
use super::shell::{AGENT_SECONDS, HookInvocation, is_ours};
use crate::edit::EditError;
use crate::edit::json::{JsonDocument, NewValue, PathStep, RemovalRest};

/// An installation, or its removal.
pub struct InstallRequest {
    pub hook: HookInvocation,
    pub scope: InstallScope,
    pub remove: bool,
}

/// The form of hooks in the settings of an agent.
pub struct HookForm {
    /// The agent, as it is called on the command line.
    pub agent: &'static str,
    /// The event before a call.
    pub call: &'static str,
    /// Events that are only reported, with the seconds that the agent waits.
    pub reported: &'static [(&'static str, u64)],
    /// Matches every tool, where hooks are in groups.
    pub matcher: Option<&'static str>,
    /// Texts that every hook has.
    pub texts: &'static [(&'static str, &'static str)],
    /// The name of the member with the command.
    pub command: &'static str,
    /// The name of the member with the time-out, and its unit.
    pub timeout: &'static str,
    pub unit_milliseconds: u32,
    pub block: Option<BlockMember>,
    pub setting: Option<RequiredSetting>,
}

/// The member that makes a failure of the hook block the call.
pub struct BlockMember {
    pub name: &'static str,
    pub value: fn() -> Value,
    /// Whether it also counts if the hook is killed.
    pub is_enough: bool,
}

/// A member of the settings that must be there besides the hooks.
pub struct RequiredSetting {
    pub path: &'static [&'static str],
    pub name: &'static str,
    pub need: SettingNeed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SettingNeed {
    /// `true`, in the settings for everybody.
    TrueIfManaged,
    /// `1`, only if it is missing.
    One,
}

/// The version of the format.
pub const VERSION_1: RequiredSetting = RequiredSetting {
    path: &[],
    name: "version",
    need: SettingNeed::One,
};

/// A hook for one event.
pub struct HookEntry {
    pub event: &'static str,
    pub matcher: Option<&'static str>,
    pub command: String,
    pub seconds: u64,
}

/// The element of an event's list.
#[derive(Serialize)]
#[serde(untagged)]
enum ListElement {
    Group {
        #[serde(skip_serializing_if = "Option::is_none")]
        matcher: Option<&'static str>,
        hooks: [OrderedObject; 1],
    },
    Single(OrderedObject),
}

/// Keeps the order of its members, which `Value` sorts.
struct OrderedObject(Vec<(&'static str, Value)>);

impl Serialize for OrderedObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
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
    fn steps(&self) -> Vec<PathStep> {
        let mut steps = keys(&["hooks", &self.event]);
        steps.push(PathStep::Index(self.index));
        if let Some(inner) = self.inner {
            steps.extend([PathStep::Key("hooks".to_owned()), PathStep::Index(inner)]);
        }
        steps
    }

    pub fn element<'v>(&self, settings: &'v Value) -> &'v Value {
        &settings["hooks"][&self.event][self.index]
    }
}

fn keys(names: &[&str]) -> Vec<PathStep> {
    let names = names.iter().map(|name| (*name).to_owned());
    names.map(PathStep::Key).collect()
}

impl RequiredSetting {
    fn value(&self) -> Value {
        match self.need {
            SettingNeed::TrueIfManaged => true.into(),
            SettingNeed::One => 1.into(),
        }
    }

    fn found<'v>(&self, settings: &'v Value) -> Option<&'v Value> {
        let object = self.path.iter().fold(settings, |value, key| &value[*key]);
        object.get(self.name)
    }

    fn steps(&self) -> Vec<PathStep> {
        keys(&[self.path, &[self.name]].concat())
    }

    fn set(&self, document: &mut JsonDocument) -> Result<(), EditError> {
        let fresh = NewValue::of(&self.value())?;
        match self.found(&document.value()?) {
            Some(_) if self.need == SettingNeed::One => Ok(()),
            Some(found) if *found == self.value() => Ok(()),
            Some(_) => document.replace(&self.steps(), &fresh),
            None => document.insert(self.path, self.name, &fresh),
        }
    }

    /// It makes sense only with hooks, so it goes with the last one.
    fn unset(&self, document: &mut JsonDocument) -> Result<RemovalRest, EditError> {
        let settings = document.value()?;
        let hooks = settings["hooks"].as_object();
        let has_hooks = hooks.is_some_and(|hooks| !hooks.is_empty());
        if has_hooks || self.found(&settings) != Some(&self.value()) {
            return Ok(RemovalRest::Something);
        }
        document.remove(&self.steps())
    }
}

impl HookForm {
    pub fn entries(&self, hook: &HookInvocation) -> Vec<HookEntry> {
        let call = HookEntry {
            event: self.call,
            matcher: self.matcher,
            command: hook.guarded(),
            seconds: AGENT_SECONDS,
        };
        let reported = self.reported.iter().map(|(event, seconds)| HookEntry {
            event,
            matcher: None,
            command: hook.plain(),
            seconds: *seconds,
        });
        [call].into_iter().chain(reported).collect()
    }

    fn element(&self, entry: &HookEntry) -> ListElement {
        let texts = self
            .texts
            .iter()
            .map(|(name, text)| (*name, (*text).into()));
        let mut members: Vec<(_, Value)> = texts.collect();
        let timeout = entry.seconds * 1_000 / u64::from(self.unit_milliseconds);
        members.push((self.command, entry.command.as_str().into()));
        members.push((self.timeout, timeout.into()));
        let block = self.block.iter().filter(|_| entry.event == self.call);
        members.extend(block.map(|block| (block.name, (block.value)())));
        let hook = OrderedObject(members);
        if self.matcher.is_none() {
            return ListElement::Single(hook);
        }
        ListElement::Group {
            matcher: entry.matcher,
            hooks: [hook],
        }
    }

    /// The settings with our hooks in them, or without.
    pub fn plan(
        &self,
        request: &InstallRequest,
        path: PathBuf,
    ) -> Result<FileChange, InstallRefusal> {
        let before = file::read(&path)?;
        let is_managed = request.scope == InstallScope::Managed;
        let setting = self.setting.as_ref();
        let setting = setting.filter(|it| is_managed || it.need != SettingNeed::TrueIfManaged);
        let edit = || {
            let mut document = JsonDocument::parse(before.as_deref().unwrap_or_default())?;
            if !request.remove {
                if let Some(setting) = setting {
                    setting.set(&mut document)?;
                }
                self.install(&mut document, &self.entries(&request.hook))?;
                return Ok(Some(document.text()));
            }
            let found = self.find(&document.value()?);
            if found.is_empty() {
                return Ok(before.clone());
            }
            let mut left = RemovalRest::Something;
            for found in found.into_iter().rev() {
                left = document.remove(&found.steps())?;
            }
            if let (RemovalRest::Something, Some(setting)) = (&left, setting) {
                left = setting.unset(&mut document)?;
            }
            Ok((left == RemovalRest::Something).then(|| document.text()))
        };
        let after = edit().map_err(|error: EditError| {
            let message = format!("{}, {error}; nothing was changed", path.display());
            InstallRefusal::Malformed(message)
        })?;
        Ok(FileChange {
            path,
            before,
            after,
            public: is_managed,
        })
    }

    /// All of ours in the settings.
    pub fn find(&self, settings: &Value) -> Vec<FoundHook> {
        let mut found = Vec::new();
        let is_ours = |hook: &Value| is_ours(self.agent, hook);
        let events = settings["hooks"].as_object().into_iter().flatten();
        for (event, elements) in events {
            for (index, element) in elements.as_array().into_iter().flatten().enumerate() {
                let place = |inner| FoundHook {
                    event: event.clone(),
                    index,
                    inner,
                };
                let Some(inner) = element["hooks"].as_array() else {
                    found.extend(is_ours(element).then(|| place(None)));
                    continue;
                };
                let ours: Vec<_> = (0..inner.len()).filter(|at| is_ours(&inner[*at])).collect();
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
    fn install(&self, document: &mut JsonDocument, entries: &[HookEntry]) -> Result<(), EditError> {
        let mut kept = Vec::new();
        let settings = document.value()?;
        let found = self.find(&settings);
        for entry in entries {
            let element = self.element(entry);
            let wanted = serde_json::to_value(&element)?;
            let is_of_event = |it: &&FoundHook| it.event == entry.event && it.inner.is_none();
            let mut ours = found.iter().filter(is_of_event);
            let same = ours.clone().find(|it| *it.element(&settings) == wanted);
            let place = same.or(ours.next());
            if let (None, Some(place)) = (same, place) {
                document.replace(&place.steps(), &NewValue::of(&element)?)?;
            }
            kept.push(place);
        }
        // From the last one, so that the places before it stay the same.
        for found in found.iter().rev() {
            if !kept.contains(&Some(found)) {
                document.remove(&found.steps())?;
            }
        }
        for (entry, place) in entries.iter().zip(&kept) {
            if place.is_none() {
                let fresh = NewValue::of(&self.element(entry))?;
                document.append(&["hooks", entry.event], &fresh)?;
            }
        }
        Ok(())
    }
}
