//! Shows what would change, or has changed, to people and to programs.

use countersign::agent::install::file::FileChange;
use countersign::client::{visible, visible_lines};
use serde_json::json;
use similar::TextDiff;

use super::args::InstallArgs;
use crate::commands::output::{print_json, print_line, remark};
use crate::commands::terminal::{Colour, output_has_colour, paint};

/// All that an installation does.
pub struct InstallPlan {
    pub changes: Vec<FileChange>,
    pub commands: Vec<String>,
    pub warnings: Vec<String>,
}

impl InstallPlan {
    pub fn report(&self, args: &InstallArgs, changed: bool) -> anyhow::Result<()> {
        let files = self.changes.iter().map(|change| {
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
            "commands": self.commands,
            "warnings": self.warnings,
        }))
    }

    pub fn show(&self, args: &InstallArgs) -> anyhow::Result<()> {
        for change in &self.changes {
            show_change(change)?;
        }
        for command in &self.commands {
            print_line(&format!("run {}", visible(command)))?;
        }
        for warning in &self.warnings {
            remark(&format!("warning: {}", visible_lines(warning)));
        }
        if self.changes.is_empty() && self.commands.is_empty() {
            let state = if args.remove {
                "is not installed"
            } else {
                "is already installed"
            };
            let title = args.agent.title();
            remark(&format!("{title} {state}; nothing to change"));
        }
        Ok(())
    }
}

/// The file, and every line that would be other.
pub fn show_change(change: &FileChange) -> anyhow::Result<()> {
    let colour = output_has_colour();
    print_line(&format!("{} {}", action(change), change.path.display()))?;
    for line in diff(change).lines() {
        let shown = visible_lines(line);
        print_line(&match line.as_bytes().first() {
            Some(b'+') => paint(colour, Colour::Green, &shown),
            Some(b'-') => paint(colour, Colour::Red, &shown),
            _ => shown,
        })?;
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
    let before = change.before.as_deref().unwrap_or_default();
    let after = change.after.as_deref().unwrap_or_default();
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(3).to_string()
}
