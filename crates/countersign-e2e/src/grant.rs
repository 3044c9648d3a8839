//! Grants: permissions of a signature beyond the one request. A grant that is not understood
//! permits nothing, so that the enforcer asks again.

use std::time::Duration;

use serde_json::json;

use countersign_protocol::decision::DecisionScope;
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::MemberReader;
use countersign_protocol::text::is_longer;
use countersign_protocol::timestamp::Timestamp;

/// Longest grant, counted from when the enforcer accepted the decision.
pub const MAX_GRANT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_WORDS: usize = 64;
const MAX_WORD_CHARS: usize = 1_024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantMatch {
    /// The same tool with the same input.
    Same,
    /// A plain command that starts with these words; at least one.
    Prefix(Vec<String>),
}

impl GrantMatch {
    pub fn prefix(words: Vec<String>) -> Option<Self> {
        let plain = |word: &String| {
            let fits = !word.is_empty() && !is_longer(word, MAX_WORD_CHARS);
            fits && !word.chars().any(char::is_control)
        };
        let bounded = (1..=MAX_WORDS).contains(&words.len());
        (bounded && words.iter().all(plain)).then_some(Self::Prefix(words))
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Same => json!({"match": "same"}),
            Self::Prefix(words) => json!({"match": "prefix", "argv": words}),
        }
    }

    /// None if it is not exactly one of the known forms.
    pub(super) fn read(node: &JsonNode<'_>) -> Option<Self> {
        let mut reader = MemberReader::new(node, "").ok()?;
        let found = if reader.one_of("match", &["same", "prefix"]).ok()? == "same" {
            Self::Same
        } else {
            let words = reader.optional("argv")?.as_array()?.iter();
            let words = words.map(|word| word.as_str().map(str::to_owned));
            Self::prefix(words.collect::<Option<_>>()?)?
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
