//! `dev --reset`: deletes what `dev` has written, and nothing else.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use countersign::client::profile::ProfileFile;

use super::data_dir::{default_data_dir, in_use, lock, run_dirs};
use super::demo::DemoAccounts;
use super::postgres::PrivatePostgres;
use crate::commands::output::print_line;
use crate::commands::terminal::confirm;

/// How the names begin that `dev` gives to files and directories. A directory that a user named by
/// mistake keeps everything else.
const OWN_NAMES: [&str; 6] = ["postgres", "demo", "run", "profiles", "countersign", "lan"];

pub async fn reset(data_dir: Option<PathBuf>, yes: bool) -> anyhow::Result<()> {
    let directory = std::path::absolute(data_dir.unwrap_or_else(default_data_dir))?;
    let place = directory.display();
    if run_dirs(&directory).is_empty() {
        return print_line(&format!(
            "nothing to delete: {place} has no data of `countersign dev`"
        ));
    }
    let _locks = lock_all(&directory)?;
    let entries = own_entries(&directory)?;
    let tenants: Vec<_> = entries.iter().filter_map(|path| tenant_of(path)).collect();
    let profiles = profiles_of(&tenants)?;
    if !yes {
        print_line(&format!(
            "{place}: the database, the log, the demo keys and the profiles in it"
        ))?;
        for profile in &profiles {
            print_line(&format!(
                "{}: the roles of the demo",
                profile.path().display()
            ))?;
        }
        let sure = confirm("Delete this? It can't be undone.").await;
        let sure = sure.context("--reset asks first; --yes answers in advance")?;
        anyhow::ensure!(sure, "nothing was deleted");
    }
    PrivatePostgres::stop_leftover(&directory).await?;
    // First, since the data says which roles belong to it.
    for profile in profiles {
        profile.forget(&tenants)?;
    }
    for entry in entries {
        let removed = if entry.is_dir() && !entry.is_symlink() {
            std::fs::remove_dir_all(&entry)
        } else {
            std::fs::remove_file(&entry)
        };
        removed.with_context(|| format!("cannot delete {}", entry.display()))?;
    }
    // It stays if it has something that is not ours.
    let _kept = std::fs::remove_dir(&directory);
    print_line(&format!(
        "deleted: {place}; `countersign dev` starts afresh"
    ))
}

/// Nobody may start on the data while it is deleted.
fn lock_all(directory: &Path) -> anyhow::Result<Vec<File>> {
    let runs = run_dirs(directory).into_iter();
    runs.map(|run| lock(&run)?.with_context(|| in_use(directory)))
        .collect()
}

fn own_entries(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_own = |name: &str| {
        let rest = |own| name.strip_prefix(own);
        (OWN_NAMES.iter().filter_map(rest))
            .any(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
    };
    let entries: Result<Vec<_>, _> = std::fs::read_dir(directory)?.collect();
    let own = entries?
        .into_iter()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_own));
    Ok(own.map(|entry| entry.path()).collect())
}

fn tenant_of(file: &Path) -> Option<String> {
    let text = std::fs::read(file).ok()?;
    let demo: DemoAccounts = serde_json::from_slice(&text).ok()?;
    Some(demo.tenant_id)
}

/// The user's profiles that have a role at one of these tenants.
fn profiles_of(tenants: &[String]) -> anyhow::Result<Vec<ProfileFile>> {
    let has_role = |file: &ProfileFile| {
        let Ok(profile) = file.load() else {
            return false;
        };
        let enforcer = profile.enforcer.map(|it| it.gateway.tenant);
        let approver = profile.approver.map(|it| it.gateway.tenant);
        [enforcer, approver]
            .into_iter()
            .flatten()
            .any(|tenant| tenants.contains(&tenant))
    };
    Ok(ProfileFile::all()?.into_iter().filter(has_role).collect())
}
