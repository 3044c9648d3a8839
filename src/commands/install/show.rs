//! What would change, or has changed, for people and for programs.

use countersign::client::{visible, visible_lines};
use serde_json::json;
use similar::TextDiff;

use super::InstallArgs;
use super::file::FileChange;
use crate::commands::output::{print_json, print_line, remark};
use crate::commands::terminal::{Colour, output_has_colour, paint};

pub fn report(
    args: &InstallArgs,
    changes: &[FileChange],
    commands: &[String],
    warnings: &[String],
    changed: bool,
) -> anyhow::Result<()> {
    let files = changes.iter().map(|change| {
        json!({
            "path": change.path.to_string_lossy(),
            "action": action(change),
            "diff": diff(change),
        })
    });
    print_json(&json!({
        "agent": args.agent.as_str(),
        "changed": changed,
        "files": files.collect::<Vec<_>>(),
        "commands": commands,
        "warnings": warnings,
    }))
}

pub fn show(
    args: &InstallArgs,
    changes: &[FileChange],
    commands: &[String],
    warnings: &[String],
) -> anyhow::Result<()> {
    let colour = output_has_colour();
    for change in changes {
        print_line(&format!("{} {}", action(change), change.path.display()))?;
        for line in diff(change).lines() {
            let shown = visible_lines(line);
            print_line(&match line.as_bytes().first() {
                Some(b'+') => paint(colour, Colour::Green, &shown),
                Some(b'-') => paint(colour, Colour::Red, &shown),
                _ => shown,
            })?;
        }
    }
    for command in commands {
        print_line(&format!("run {}", visible(command)))?;
    }
    for warning in warnings {
        remark(&format!("warning: {}", visible_lines(warning)));
    }
    if changes.is_empty() && commands.is_empty() {
        let state = if args.remove {
            "is not installed"
        } else {
            "is installed already"
        };
        remark(&format!(
            "{} {state}; nothing to change",
            args.agent.title()
        ));
    }
    Ok(())
}

fn action(change: &FileChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "create",
        (_, None) => "delete",
        _ => "change",
    }
}

fn diff(change: &FileChange) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (before, after) = (text(&change.before), text(&change.after));
    let diff = TextDiff::from_lines(&before, &after);
    diff.unified_diff().context_radius(3).to_string()
}
