//! The agents that Countersign stands in front of: what their hooks say, how they are answered,
//! what `install` writes into their settings, and what `doctor` looks at there.
//!
//! | file | contents |
//! |---|---|
//! | `agents` | one file per agent, which defines it as an [`AgentDefinition`] |
//! | `agent` | the table of agents |
//! | `event`, `members` | an agent's JSON as a [`HookEvent`]; a tool call as a [`ToolAction`] |
//! | `names`, `places`, `policy` | the files that a call names, and whether a person is asked |
//! | `change`, `patch`, `proposal` | what an approver is shown |
//! | `files`, `plain_file`, `prepare` | reads the files of a call and its policy |
//! | `payload_rules` | the rules about a request that is not a tool call |
//! | `question` | the questions that an agent asks its user, and their answers |
//! | `answer` | the answer in the agent's own form |
//! | `edit`, `install` | changes to the settings of agents, and our hook in them |

mod agent;
mod agents;
mod answer;
mod change;
mod definition;
pub mod edit;
mod event;
mod files;
pub mod install;
mod members;
mod names;
mod patch;
mod payload_rules;
mod places;
mod plain_file;
mod policy;
mod prepare;
mod proposal;
mod question;

pub use self::agent::{Agent, MAX_INPUT_BYTES, UnreadableEvent};
pub use self::answer::{BLOCK, HookOutput, HookVerdict, guarded, takes_context};
pub use self::definition::AgentDefinition;
pub use self::event::{
    AgentQuestion, CellChange, EventKind, HookEvent, MatchCount, QuestionChoice, TextReplacement,
    ToolAction, ToolCall,
};
pub use self::files::{OwnPolicy, own_policy, policy, receipt_folder, work_directories};
pub use self::install::places::repository_root;
pub use self::install::shell::parse_duration;
pub use self::payload_rules::{demands_here, demands_unseen};
pub use self::places::{NamedPath, WorkDirectories, normal};
pub use self::policy::{
    FileDigests, FoundProject, HookPolicy, JudgedPart, PolicyJudgement, PolicyKind, bound_digests,
    with_commands, with_preset,
};
pub use self::prepare::{ExplainedCall, PreparedCall, PreparedRequest, explain, prepare};
pub use self::proposal::{BaseFile, ChangeProposal, MAX_PAYLOAD_BYTES};
pub use self::question::QuestionAnswers;
