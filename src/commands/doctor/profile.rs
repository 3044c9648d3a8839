//! The profile that the hook uses, and others that an agent could use against it.

use countersign::client::enforcer::Enforcer;
use countersign::client::profile::ProfileFile;
use countersign::clock::Clock;

use crate::commands::findings::{FindingReport, FindingStatus};

/// Whether there is an enforcer to go on with.
pub fn check(file: &ProfileFile, report: &mut FindingReport) -> bool {
    let path = file.path().display();
    let profile = match file.load() {
        Ok(profile) => profile,
        // The message says what to do.
        Err(error) => {
            report.add("profile", FindingStatus::Failed, error.to_string(), None);
            return false;
        }
    };
    let Some(enforcer) = profile.enforcer else {
        report.fail(
            "profile",
            format!("{path} has no enforcer, so every call is denied"),
            "join with an invitation for an enforcer: countersign join LINK",
        );
        return false;
    };
    pauses(file, report);
    let id = enforcer.id;
    let message = format!("{path}: enforcer {id}, readable only by its owner");
    report.ok("profile", message);
    report.warn(
        "same user",
        "an agent that runs as this user can edit this profile, choose another gateway and approver, and approve its own requests",
        "run a guard as another user: countersign guard --help",
    );
    true
}

fn pauses(file: &ProfileFile, report: &mut FindingReport) {
    let pauses = Enforcer::open(file, &Clock::system()).and_then(|enforcer| enforcer.pauses());
    match pauses {
        Ok(pauses) => {
            for pause in pauses {
                let remedy = format!("{} can end it: countersign resume", pause.approver);
                report.warn("pause", pause.to_string(), remedy);
            }
        }
        Err(error) => report.add("pause", FindingStatus::Failed, error.to_string(), None),
    }
}

/// Every process that can read an approver's keys can approve. An agent runs as the user who runs
/// this.
pub fn approvers(file: &ProfileFile, report: &mut FindingReport) {
    let directory = file.path().parent().and_then(|path| path.read_dir().ok());
    let files = directory.into_iter().flatten().flatten();
    let files = files.map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|name| name == "toml"));
    let exposed = files.filter(|path| {
        let profile = ProfileFile::at(path.clone()).load();
        let approver = profile.ok().and_then(|profile| profile.approver);
        approver.is_some_and(|approver| approver.sealed_keys().is_none())
    });
    let exposed: Vec<_> = exposed.map(|path| path.display().to_string()).collect();
    if exposed.is_empty() {
        return report.ok(
            "approver's keys",
            "none that this user can read unencrypted",
        );
    }
    report.warn(
        "approver's keys",
        format!(
            "an agent that runs as this user can read {} and approve its own requests",
            exposed.join(", ")
        ),
        "run the agent as another user, decide on another machine, or set a passphrase: countersign passphrase",
    );
}
