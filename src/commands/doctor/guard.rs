//! The guard that hooks ask through: whether it answers, and whether an agent of this user could
//! take its place.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use countersign::agent::OwnPolicy;
use countersign::client::profile::ProfileFile;
use nix::unistd::{AccessFlags, Uid, access};

use crate::commands::findings::FindingReport;
use crate::commands::guard::GuardAddress;

const CHECK: &str = "guard";

/// The policy that the guard has, or why there is none.
pub async fn check(
    address: &GuardAddress,
    file: &ProfileFile,
    report: &mut FindingReport,
) -> Result<OwnPolicy, String> {
    let text = match address.policy().await {
        Ok(text) => text,
        Err(problem) => {
            let remedy = "start the guard, or correct --guard; until then every call is denied";
            report.fail(CHECK, problem.clone(), remedy);
            return Err(problem);
        }
    };
    report.ok(CHECK, format!("{address} answers"));
    if address.uid().is_ok_and(|uid| uid == Uid::current()) {
        report.fail(
            CHECK,
            "it runs as this user, so this user's agents can edit its files",
            "run the guard as a user of its own",
        );
    } else {
        report.ok(CHECK, "it runs as a different user");
    }
    check_directory(address, report);
    if file.load().is_ok_and(|profile| profile.enforcer.is_some()) {
        report.warn(
            CHECK,
            format!(
                "{} still has an enforcer of this user",
                file.path().display()
            ),
            "remove it: a hook without --guard would use it",
        );
    }
    let source = "the policy of the guard".to_owned();
    Ok(OwnPolicy { source, text })
}

/// Whether this user could put another socket in the guard's place.
fn check_directory(address: &GuardAddress, report: &mut FindingReport) {
    if Uid::effective().is_root() {
        return report.warn(
            CHECK,
            "not checked as root, who can replace every socket",
            "run doctor as the agent's user",
        );
    }
    let socket = address.socket().ok();
    let directory = socket.as_deref().and_then(Path::parent);
    let Some(Ok(directory)) = directory.map(Path::canonicalize) else {
        return report.fail(CHECK, "its socket has no directory", "correct --guard");
    };
    let writable = directory.ancestors().find(|place| {
        let is_own = place
            .metadata()
            .is_ok_and(|it| it.uid() == Uid::current().as_raw());
        is_own || access(*place, AccessFlags::W_OK).is_ok()
    });
    match writable {
        Some(place) => report.fail(
            CHECK,
            format!(
                "this user can write to {}, and replace the socket",
                place.display()
            ),
            "put the socket where only root and the guard's user can write",
        ),
        None => report.ok(CHECK, "this user cannot replace its socket"),
    }
}
