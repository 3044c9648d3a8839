//! The policy: calls that need not be asked about. The user's `policy.toml` lists them; a project's
//! `.countersign.toml` can only ask for more.

mod call_rule;
mod command_rule;
mod demands;
mod found;
mod hook_policy;
mod judge;
mod preset;
mod project_rules;
mod reading;
mod rule_list;
mod tool_rule;

pub use self::found::{FoundProject, bound_digests};
pub use self::hook_policy::HookPolicy;
pub use self::judge::{JudgedPart, PolicyJudgement};
pub use self::preset::{PolicyKind, with_commands, with_preset};
pub use self::project_rules::FileDigests;
