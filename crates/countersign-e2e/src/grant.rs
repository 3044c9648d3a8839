//! Grants: permissions of a signature beyond the one request. A grant that is not understood
//! permits nothing, so that the enforcer asks again.

use std::time::Duration;

use serde_json::json;

use countersign_protocol::decision::DecisionScope;
use countersign_protocol::json::{JsonNode, JsonValue};
use countersign_protocol::reader::MemberReader;
use countersign_protocol::text::is_longer;
use countersign_protocol::timestamp::Timestamp;

/// Longest grant, counted from when the enforcer accepted the decision.
pub const MAX_GRANT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_WORDS: usize = 64;
const MAX_WORD_CHARS: usize = 1_024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantMatch {
    /// The same tool with the same input, whatever the model writes beside it.
    Same,
    /// A plain command that starts with these words; at least one.
    Prefix(Vec<String>),
    /// A plain command whose words fit.
    Words(WordPattern),
    /// Edits of the files that the request edits, in its session.
    File,
    /// Edits of files in the project that the request names, in its session.
    Project,
}

/// Words of a command, of which some are free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordPattern {
    words: Vec<Option<String>>,
    more: bool,
}

impl WordPattern {
    /// `None` is any word that is not an option; the program itself is never free. `more` lets
    /// further words follow.
    pub fn new(words: Vec<Option<String>>, more: bool) -> Option<Self> {
        let bounded = (1..=MAX_WORDS).contains(&words.len());
        let starts = words.first().is_some_and(Option::is_some);
        let plain = words.iter().flatten().all(|word| is_plain(word));
        (bounded && starts && plain).then_some(Self { words, more })
    }

    pub fn words(&self) -> &[Option<String>] {
        &self.words
    }

    getters! {
        /// Whether further words may follow.
        pub copy more: bool;
    }
}

fn is_plain(word: &str) -> bool {
    let fits = !word.is_empty() && !is_longer(word, MAX_WORD_CHARS);
    fits && !word.chars().any(char::is_control)
}

impl GrantMatch {
    pub fn prefix(words: Vec<String>) -> Option<Self> {
        let bounded = (1..=MAX_WORDS).contains(&words.len());
        (bounded && words.iter().all(|word| is_plain(word))).then_some(Self::Prefix(words))
    }

    /// Its name in the signed decision.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Prefix(_) => "prefix",
            Self::Words(_) => "words",
            Self::File => "file",
            Self::Project => "project",
        }
    }

    /// Whether it is about edits, which are permitted for a session only.
    pub fn is_for_edits(&self) -> bool {
        matches!(self, Self::File | Self::Project)
    }

    pub fn to_json(&self) -> serde_json::Value {
        let mut members = json!({ "match": self.name() });
        match self {
            Self::Same | Self::File | Self::Project => {}
            Self::Prefix(words) => members["argv"] = json!(words),
            Self::Words(pattern) => {
                members["argv"] = json!(pattern.words);
                if pattern.more {
                    members["more"] = true.into();
                }
            }
        }
        members
    }

    /// None if it is not exactly one of the known forms.
    pub(super) fn read(node: &JsonNode<'_>) -> Option<Self> {
        let mut reader = MemberReader::new(node, "").ok()?;
        let names = ["same", "prefix", "words", "file", "project"];
        let found = match reader.one_of("match", &names).ok()? {
            "same" => Self::Same,
            "file" => Self::File,
            "project" => Self::Project,
            "prefix" => {
                let words = reader.optional("argv")?.as_array()?.iter();
                let words = words.map(|word| word.as_str().map(str::to_owned));
                Self::prefix(words.collect::<Option<_>>()?)?
            }
            _ => {
                let words = reader.optional("argv")?.as_array()?.iter();
                let words = words.map(|word| match word.value {
                    JsonValue::Null => Some(None),
                    _ => word.as_str().map(|word| Some(word.to_owned())),
                });
                let words = words.collect::<Option<_>>()?;
                let more = reader.optional_bool("more").ok()?.unwrap_or_default();
                Self::Words(WordPattern::new(words, more)?)
            }
        };
        reader.finish().ok()?;
        Some(found)
    }
}

/// The grant of a decision, as read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum WantedGrant {
    #[default]
    Absent,
    NotUnderstood,
    Matching(GrantMatch),
}

/// A permission beyond one request, until a time or the end of the agent's session, whichever comes
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub matches: GrantMatch,
    pub until: Timestamp,
    /// Whether it also ends with the agent's session.
    pub session_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantOutcome {
    Given(Grant),
    /// With the reason.
    NotGiven(&'static str),
}

pub(super) fn judge_grant(
    scope: DecisionScope,
    wanted: WantedGrant,
    expires_at: Timestamp,
    accepted_at: Timestamp,
) -> GrantOutcome {
    let session_only = match scope {
        DecisionScope::Once => return GrantOutcome::NotGiven("it is for one request only"),
        DecisionScope::Timebox => false,
        DecisionScope::Session => true,
    };
    let matches = match wanted {
        WantedGrant::Matching(matches) => matches,
        WantedGrant::Absent => {
            return GrantOutcome::NotGiven("it does not say what else it permits");
        }
        WantedGrant::NotUnderstood => {
            return GrantOutcome::NotGiven("what else it permits is not understood");
        }
    };
    if matches.is_for_edits() && !session_only {
        return GrantOutcome::NotGiven("edits are permitted for a session only");
    }
    let latest = accepted_at
        .inner()
        .checked_add(MAX_GRANT_LIFETIME.try_into().unwrap_or_default());
    let latest = latest.map_or(accepted_at, Timestamp::from);
    GrantOutcome::Given(Grant {
        matches,
        until: expires_at.min(latest),
        session_only,
    })
}
