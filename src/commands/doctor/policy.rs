//! The policy of this user and the files of the project in which `doctor` runs: whether they can be
//! read, and how much passes.

use countersign::agent::{self, OwnPolicy};
use countersign::client::profile::ProfileFile;

use crate::commands::findings::FindingReport;

const CHECK: &str = "policy";

pub fn check(
    file: &ProfileFile,
    own_policy: Result<OwnPolicy, String>,
    report: &mut FindingReport,
) {
    let directory = std::env::current_dir().unwrap_or_default();
    let directory = directory.display().to_string();
    let places = agent::work_directories(&directory, file);
    let policy = places.and_then(|places| agent::policy(&places, &own_policy?));
    let policy = match policy {
        Ok(policy) => policy,
        Err(problem) => {
            let message = format!("{problem}; every call is denied");
            return report.fail(CHECK, message, "correct the file");
        }
    };
    if let Some(reason) = policy.ask_all_reason() {
        let message = format!("every call in {directory} needs approval: {reason}");
        return report.warn(CHECK, message, "correct the file");
    }
    for (commands, demand) in policy.command_rules() {
        let message = format!(
            "{commands}: {demand}; a script is a name like any other, so a rule without commands, tools and paths is safer"
        );
        report.ok("rule", message);
    }
    let wide = policy.wide_classes();
    if wide.is_empty() {
        return report.ok(CHECK, format!("valid in {directory}"));
    }
    report.warn(
        CHECK,
        format!(
            "allow.tools has {}: such calls run without approval",
            wide.join(" and ")
        ),
        "list commands in allow.commands, and single tools in allow.tools",
    );
}
