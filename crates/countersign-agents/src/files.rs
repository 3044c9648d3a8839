//! The files that a call names, and those of its policy.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use countersign_client::enforcer::ReceiptFolder;
use countersign_client::profile::ProfileFile;

use crate::agent::Agent;
use crate::install::places::{repository_root, variable};
use crate::places::{NamedPath, WorkDirectories, normal};
use crate::plain_file::{bytes, open};
use crate::policy::{HookPolicy, bound_digests};
use crate::proposal::BaseFile;

/// The largest file that a call may change, and the largest sum of its files.
const MAX_FILE_BYTES: u64 = 16 << 20;
const MAX_SUM_BYTES: u64 = 64 << 20;
const MAX_POLICY_BYTES: u64 = 256 << 10;
const PROJECT_FILE: &str = ".countersign.toml";

/// The directories that a call of an agent in `directory` is judged by.
pub fn work_directories(directory: &str, file: &ProfileFile) -> Result<WorkDirectories, String> {
    let directory = PathBuf::from(directory);
    if !directory.is_absolute() {
        return Err("the agent does not say which directory it works in".to_owned());
    }
    let real = real(&directory).ok_or("the agent's directory does not exist")?;
    let own = file.path().parent().unwrap_or(Path::new("/"));
    let followed = |path: &Path| self::real(path).unwrap_or_else(|| path.to_owned());
    Ok(WorkDirectories {
        project: repository_root(&real).to_owned(),
        directory,
        home: variable("HOME").map(|home| followed(&home)),
        own: followed(own),
        program: std::env::current_exe().ok().map(|it| followed(&it)),
        moved: moved(),
    })
}

/// Where variables say that agents have their own directories.
fn moved() -> Vec<(PathBuf, &'static str)> {
    let definitions = Agent::ALL.into_iter().map(Agent::definition);
    let mut moved = Vec::new();
    for place in definitions.filter_map(|agent| agent.moved.as_ref()) {
        let Some(value) = variable(place.variable) else {
            continue;
        };
        let directory = value.join(place.below);
        moved.extend(real(&directory).map(|real| (real, place.usual)));
        moved.push((normal(&directory), place.usual));
    }
    moved
}

/// The policy of the user, or of the guard.
pub struct OwnPolicy {
    /// As an error names it.
    pub source: String,
    pub text: Option<String>,
}

/// The policy beside a profile. An error is why everything is denied.
pub fn own_policy(file: &ProfileFile) -> Result<OwnPolicy, String> {
    let path = file.path().with_file_name("policy.toml");
    let source = format!("the policy {}", path.display());
    let text = match text(&path) {
        Ok(None) => None,
        Ok(Some((text, true))) => Some(text),
        Ok(Some(_)) => return Err(format!("{source}: others can write it; chmod 600 it")),
        Err(error) => return Err(format!("{source}: {error}")),
    };
    Ok(OwnPolicy { source, text })
}

/// Where the user's policy has receipts kept. An error is why everything is denied.
pub fn receipt_folder(file: &ProfileFile) -> Result<Option<ReceiptFolder>, String> {
    let own = own_policy(file)?;
    let Some(text) = &own.text else {
        return Ok(None);
    };
    let policy = HookPolicy::parse(text, &work_directories("/", file)?);
    let policy = policy.map_err(|problem| format!("{}: {problem}", own.source))?;
    Ok(policy.receipts)
}

/// The user's policy, made stricter by the project's. An error is why everything is denied.
pub fn policy(places: &WorkDirectories, own: &OwnPolicy) -> Result<HookPolicy, String> {
    let wrong = |problem: String| format!("{}: {problem}", own.source);
    let mut policy = match &own.text {
        Some(text) => HookPolicy::parse(text, places).map_err(wrong)?,
        None => HookPolicy::default(),
    };
    let real = real(&places.directory).unwrap_or_default();
    let is_repository = places.project.join(".git").exists();
    for directory in real.ancestors() {
        let path = directory.join(PROJECT_FILE);
        match text(&path) {
            Ok(None) => {}
            Ok(Some((text, _))) => policy.tighten(&text, places, directory)?,
            Err(error) => policy.ask_everything(format!("{}: {error}", path.display())),
        }
        if is_repository && directory == places.project {
            break;
        }
    }
    policy.follow_links(self::real);
    policy.compare_files(|| bound_digests(&places.project));
    Ok(policy)
}

/// Each as often as there are places where it could be: the system follows links before it takes
/// out `..`, and many agents the other way round. `None` if one of them cannot be followed to where
/// it is.
pub fn named(places: &WorkDirectories, names: &[String]) -> Option<Vec<NamedPath>> {
    let mut named = Vec::new();
    for written in names.iter().flat_map(|name| places.readings(name)) {
        let path = normal(&written);
        for real in [real(&written)?, real(&path)?] {
            let path = path.clone();
            named.push(NamedPath { path, real });
        }
    }
    Some(named)
}

/// The files that a call changes, as they are now.
pub fn bases(places: &WorkDirectories, names: &[&str]) -> Result<Vec<BaseFile>, String> {
    let mut left = MAX_SUM_BYTES;
    let read = |name: &&str| {
        let written = places.directory.join(name);
        let path = normal(&written);
        let nowhere = || format!("{name} is behind a link that leads nowhere");
        let real = real(&path).ok_or_else(nowhere)?;
        if self::real(&written).ok_or_else(nowhere)? != real {
            return Err(format!(
                "{name} can mean two files, depending on whether links are followed before ..; give the path without .."
            ));
        }
        let wrong = |error: io::Error| format!("{name} cannot be read: {error}");
        let content = match open(&real).map_err(wrong)? {
            Some(file) => Some(bytes(file, left.min(MAX_FILE_BYTES)).map_err(wrong)?),
            None => None,
        };
        left -= content.as_ref().map_or(0, |content| content.len() as u64);
        let text = |path: PathBuf| {
            let text = path.into_os_string().into_string();
            text.map_err(|_| format!("{name}: the path is not UTF-8, so it cannot be shown"))
        };
        Ok(BaseFile {
            given: (*name).to_owned(),
            path: text(path)?,
            real: text(real)?,
            content,
        })
    };
    names.iter().map(read).collect()
}

/// The path with links followed, as far as it exists. `None` if a link on the way leads nowhere: a
/// file that is written there would be made somewhere else.
fn real(path: &Path) -> Option<PathBuf> {
    let existing = |place| Some((place, fs::canonicalize(place).ok()?));
    let (place, real) = path.ancestors().find_map(existing)?;
    let rest = path.strip_prefix(place).ok()?;
    let next = rest.components().next();
    if next.is_some_and(|next| fs::symlink_metadata(real.join(next)).is_ok()) {
        return None;
    }
    Some(normal(&real.join(rest)))
}

/// With whether nobody else can write it.
fn text(path: &Path) -> io::Result<Option<(String, bool)>> {
    let Some(file) = open(path)? else {
        return Ok(None);
    };
    let metadata = file.metadata()?;
    let by_whom = [0, nix::unistd::geteuid().as_raw()];
    let is_own = by_whom.contains(&metadata.uid()) && metadata.mode() & 0o022 == 0;
    let text = String::from_utf8(bytes(file, MAX_POLICY_BYTES)?);
    let text = text.map_err(|_| io::Error::other("it is not UTF-8"))?;
    Ok(Some((text, is_own)))
}
