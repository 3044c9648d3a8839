//! `policy try`: what would happen to a call, and why.

use clap::Args;
use countersign::agent::{Agent, ExplainedCall, HookEvent, PolicyJudgement, explain, own_policy};
use countersign::client::profile::ProfileFile;
use countersign::client::visible;
use serde_json::{Value, json};

use super::place::here;
use crate::commands::client_options::ClientOptions;
use crate::commands::exit_action::ExitAction;
use crate::commands::output::{print_json, print_line};

#[derive(Args)]
pub struct TryArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// Try an edit of this file instead of a command.
    #[arg(long, value_name = "FILE", group = "call")]
    edit: Option<String>,
    /// Try reading this file instead of a command.
    #[arg(long, value_name = "FILE", group = "call")]
    read: Option<String>,
    /// The command. Quote it as a whole if it has pipes or redirections.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "call",
        conflicts_with = "call"
    )]
    command: Vec<String>,
}

pub fn run(args: &TryArgs) -> anyhow::Result<ExitAction> {
    let file = args.options.file()?;
    let (tool, input) = match (&args.edit, &args.read) {
        (Some(path), _) => ("Write", json!({ "file_path": path, "content": "" })),
        (_, Some(path)) => ("Read", json!({ "file_path": path })),
        _ => ("Bash", json!({ "command": written(&args.command) })),
    };
    let explained = explain_here(&file, &here()?, tool, &input)?;
    let (outcome, name) = match &explained.judgement {
        PolicyJudgement::NotAsked => ("needs no approval", "notAsked"),
        PolicyJudgement::Asked => ("needs approval", "asked"),
        PolicyJudgement::AlwaysAsked if !explained.rules.is_empty() => {
            ("needs approval every time, by a rule", "alwaysAsked")
        }
        PolicyJudgement::AlwaysAsked => (
            "needs approval every time, whatever the policy and earlier approvals say",
            "alwaysAsked",
        ),
        PolicyJudgement::Denied(_) => ("denied without asking anyone", "denied"),
    };
    if args.options.json {
        let parts = explained
            .parts
            .iter()
            .map(|it| json!({ "part": it.part, "passes": it.is_free, "reason": it.reason }));
        let parts: Vec<_> = parts.collect();
        let rules = match name {
            "asked" | "alwaysAsked" => explained.rules,
            _ => Vec::new(),
        };
        print_json(&json!({ "outcome": name, "parts": parts, "rules": rules }))?;
        return Ok(ExitAction::DONE);
    }
    print_line(outcome)?;
    for part in &explained.parts {
        let mark = if part.is_free { "passes" } else { "asks" };
        print_line(&format!(
            "  {mark:<6}  {}: {}",
            visible(&part.part),
            visible(&part.reason)
        ))?;
    }
    Ok(ExitAction::DONE)
}

/// The judgement about a call, as the hook of an agent in that directory would have it.
pub fn explain_here(
    file: &ProfileFile,
    directory: &str,
    tool: &str,
    input: &Value,
) -> anyhow::Result<ExplainedCall> {
    let event = json!({
        "hook_event_name": "PreToolUse", "cwd": directory, "tool_name": tool, "tool_input": input,
    });
    let event = HookEvent::read(Agent::Claude, event.to_string().as_bytes());
    let event = event.map_err(|error| anyhow::anyhow!("{error}"))?;
    let policy = own_policy(file).map_err(anyhow::Error::msg)?;
    explain(Agent::Claude, &event, file, &policy).map_err(anyhow::Error::msg)
}

/// One word is a whole command; several are its words.
fn written(words: &[String]) -> String {
    if let [command] = words {
        return command.clone();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+=".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
