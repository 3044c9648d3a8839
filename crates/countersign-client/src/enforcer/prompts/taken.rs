//! The prompts that an agent was given, in a file beside the profile. The gateway may show a prompt
//! again, now or much later, and several programs may look at once: each prompt is taken once.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{ClientError, Result};
use crate::private_file::{FileProblem, PrivateFile};
use crate::profile::ProfileFile;
use countersign_e2e::PlainPrompt;
use countersign_protocol::timestamp::Timestamp;

/// An older prompt is not taken, so the file need not remember any for longer.
const PROMPT_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The sender's clock may be ahead by this.
const CLOCK_SKEW_GRACE: Duration = Duration::from_secs(5 * 60);
const MAX_REMEMBERED: usize = 1_000;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptClaim {
    Taken,
    /// It was taken before, under this name.
    Again(String),
    /// Its age is out of bounds; with the reason for the sender.
    Refused(&'static str),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimTable {
    /// Prompts created until then are no longer remembered, and not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    prompts: BTreeMap<String, RememberedPrompt>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RememberedPrompt {
    created_at: String,
    claim: String,
}

impl RememberedPrompt {
    fn created_at(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.created_at)
    }
}

impl ClaimTable {
    /// Takes a prompt under the name `claim`.
    fn claim(&mut self, prompt: &PlainPrompt, claim: &str, now: Timestamp) -> PromptClaim {
        let (id, created_at) = (prompt.request_id().as_str(), prompt.created_at());
        if let Some(taken) = self.prompts.get(id) {
            return PromptClaim::Again(taken.claim.clone());
        }
        let age = now.inner() - created_at.inner();
        let until = self.until.as_deref().and_then(Timestamp::parse);
        if age > PROMPT_LIFETIME || until.is_some_and(|until| created_at <= until) {
            return PromptClaim::Refused("it is too old");
        }
        if age < -time::Duration::try_from(CLOCK_SKEW_GRACE).unwrap_or_default() {
            return PromptClaim::Refused("it is from the future");
        }
        let remembered = RememberedPrompt {
            created_at: created_at.to_string(),
            claim: claim.to_owned(),
        };
        self.prompts.insert(id.to_owned(), remembered);
        self.forget(now);
        PromptClaim::Taken
    }

    fn forget(&mut self, now: Timestamp) {
        let lifetime = PROMPT_LIFETIME.try_into().unwrap_or_default();
        let oldest = now.inner().checked_sub(lifetime).map(Timestamp::from);
        self.prompts.retain(|_, it| it.created_at() >= oldest);
        let times = self.prompts.values();
        let mut times: Vec<_> = times.filter_map(RememberedPrompt::created_at).collect();
        if times.len() > MAX_REMEMBERED {
            times.sort_unstable();
            let last = times[times.len() - MAX_REMEMBERED - 1];
            self.until = Some(last.to_string());
            self.prompts.retain(|_, it| it.created_at() > Some(last));
        }
    }
}

pub(super) struct TakenFile {
    file: PrivateFile,
}

impl TakenFile {
    pub(super) fn beside(profile: &ProfileFile) -> Self {
        Self {
            file: profile.beside("prompts.json"),
        }
    }

    /// Takes a prompt, unless it was taken before. An error means that it must not be used.
    pub(super) fn claim(
        &self,
        prompt: &PlainPrompt,
        claim: &str,
        now: Timestamp,
    ) -> Result<PromptClaim> {
        let problem = |problem: &dyn std::fmt::Display| ClientError::Prompts {
            path: self.file.path().to_owned(),
            problem: problem.to_string(),
        };
        let _lock = self.file.lock().map_err(|error| problem(&error))?;
        let text = self.file.read().map_err(|unreadable| match unreadable {
            FileProblem::Exposed(_) => problem(&"others can read it"),
            unreadable => problem(&unreadable),
        })?;
        let mut taken = match &text {
            None => ClaimTable::default(),
            Some(text) => serde_json::from_str(text).map_err(|_| problem(&"it is damaged"))?,
        };
        let claim = taken.claim(prompt, claim, now);
        if claim == PromptClaim::Taken {
            let text = serde_json::to_string(&taken).map_err(|error| problem(&error))?;
            self.file.write(&text).map_err(|error| problem(&error))?;
        }
        Ok(claim)
    }
}
