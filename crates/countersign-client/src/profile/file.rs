//! A profile, and the file that holds it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::approver::ApproverProfile;
use super::enforcer::EnforcerProfile;
use crate::error::ProfileError;
use crate::private_file::{FileProblem, PrivateFile};

const HEAD: &str =
    "# A profile of Countersign. It has private keys: a reader can act in your name.\n\n";

/// The files of teams, of each role.
pub(super) const ENFORCER_TEAMS: &str = "teams.json";
pub(super) const APPROVER_TEAMS: &str = "joined.json";

/// The file that client libraries keep beside a profile.
pub(super) const LEARNED: &str = "trust.json";

/// Files that an enforcer keeps beside its profile.
const BESIDE_ENFORCER: [&str; 8] = [
    "approved.json",
    "grants.json",
    "grants.log",
    "grants.log.old",
    "orders.json",
    "prompts.json",
    LEARNED,
    ENFORCER_TEAMS,
];

/// Folders beside it: approvals that were used, requests by their keys, and parked sets.
pub(crate) const USED: &str = "used";
pub(crate) const REQUESTS: &str = "requests";
pub(crate) const SETS: &str = "sets";

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub enforcer: Option<EnforcerProfile>,
    pub approver: Option<ApproverProfile>,
}

#[derive(Debug, Clone)]
pub struct ProfileFile {
    file: PrivateFile,
}

impl ProfileFile {
    /// The profile of this name, in the directory that `COUNTERSIGN_PROFILES` names or in the
    /// user's configuration directory.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins || !name.chars().all(plain) || name.len() > 64 {
            return Err(ProfileError::Name);
        }
        Ok(Self::at(directory()?.join(format!("{name}.toml"))))
    }

    /// Every profile in that directory.
    pub fn all() -> Result<Vec<Self>, ProfileError> {
        let entries = fs::read_dir(directory()?).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let profiles = paths.filter(|path| path.extension().is_some_and(|it| it == "toml"));
        Ok(profiles.map(Self::at).collect())
    }

    pub fn at(path: PathBuf) -> Self {
        let file = PrivateFile::at(path);
        Self { file }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    fn io(&self, error: io::Error) -> ProfileError {
        let path = self.path().to_owned();
        ProfileError::Io { path, error }
    }

    pub fn load(&self) -> Result<Profile, ProfileError> {
        (self.read()?).ok_or_else(|| ProfileError::Missing(self.path().to_owned()))
    }

    fn read(&self) -> Result<Option<Profile>, ProfileError> {
        let path = || self.path().to_owned();
        let text = self.file.read().map_err(|problem| match problem {
            FileProblem::Exposed(mode) => ProfileError::Exposed { path: path(), mode },
            FileProblem::Foreign => ProfileError::Foreign(path()),
            FileProblem::Io(error) => self.io(error),
        })?;
        let Some(text) = text else {
            return Ok(None);
        };
        toml::from_str(&text).map(Some).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            ProfileError::Malformed {
                path: path(),
                line: before.map_or(1, |before| before.matches('\n').count() + 1),
                problem: error.message().to_owned(),
            }
        })
    }

    /// One of the profile's roles, or the error that it has none of this name.
    pub(crate) fn require<T>(
        &self,
        role: Option<T>,
        name: &'static str,
    ) -> Result<T, ProfileError> {
        role.ok_or_else(|| ProfileError::NoRole {
            path: self.path().to_owned(),
            role: name,
        })
    }

    /// Changes the profile as it is now, or an empty one, and replaces the file. A lock keeps the
    /// changes of other programs. It blocks, for a moment.
    pub fn update<T, E: From<ProfileError>>(
        &self,
        change: impl FnOnce(&mut Profile) -> Result<T, E>,
    ) -> Result<T, E> {
        let _lock = self.file.lock().map_err(|error| self.io(error))?;
        let mut profile = self.read()?.unwrap_or_default();
        let result = change(&mut profile)?;
        let text = self.text(&profile)?;
        self.file.write(&text).map_err(|error| self.io(error))?;
        Ok(result)
    }

    /// Returns the profile if `update` would work now. To be called before something is used up
    /// that then has to be stored.
    pub fn rehearse(&self) -> Result<Profile, ProfileError> {
        let _lock = self.file.lock().map_err(|error| self.io(error))?;
        let profile = self.read()?.unwrap_or_default();
        let part = self.file.write_part(&self.text(&profile)?);
        part.and_then(fs::remove_file)
            .map_err(|error| self.io(error))?;
        Ok(profile)
    }

    /// Removes the roles at gateways of these tenants, with what they keep beside the profile; and
    /// the profile once it has no role.
    pub fn forget(&self, tenants: &[String]) -> Result<(), ProfileError> {
        let io = |error| self.io(error);
        let _lock = self.file.lock().map_err(io)?;
        let Some(mut profile) = self.read()? else {
            return Ok(());
        };
        if (profile.enforcer.as_ref()).is_some_and(|it| tenants.contains(&it.gateway.tenant)) {
            for extension in BESIDE_ENFORCER {
                self.beside(extension).remove().map_err(io)?;
            }
            for folder in [USED, REQUESTS, SETS] {
                match fs::remove_dir_all(self.beside(folder).path()) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
                    _ => {}
                }
            }
            profile.enforcer = None;
        }
        let is_theirs = |it: &ApproverProfile| tenants.contains(&it.gateway.tenant);
        if profile.approver.as_ref().is_some_and(is_theirs) {
            self.beside(APPROVER_TEAMS).remove().map_err(io)?;
        }
        profile.approver = profile.approver.filter(|it| !is_theirs(it));
        if profile.enforcer.is_some() || profile.approver.is_some() {
            return self.file.write(&self.text(&profile)?).map_err(io);
        }
        self.file.remove().map_err(io)?;
        self.beside("lock").remove().map_err(io)
    }

    /// A profile beside this one, such as `default-2`.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Self {
        let path = self.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::at(path.with_file_name(format!("{name}-{number}.toml")))
    }

    /// A file beside the profile, such as `default.grants.json`.
    pub(crate) fn beside(&self, extension: &str) -> PrivateFile {
        PrivateFile::at(self.path().with_extension(extension))
    }

    fn text(&self, profile: &Profile) -> Result<Zeroizing<String>, ProfileError> {
        let text = toml::to_string(profile).map(Zeroizing::new);
        let text = text.map_err(|error| self.io(io::Error::other(error.to_string())))?;
        Ok(Zeroizing::new([HEAD, text.as_str()].concat()))
    }
}

/// Where profiles are found by name.
fn directory() -> Result<PathBuf, ProfileError> {
    let set = |name| std::env::var_os(name).filter(|path| !path.is_empty());
    if let Some(directory) = set("COUNTERSIGN_PROFILES") {
        return Ok(PathBuf::from(directory));
    }
    let base = match set("XDG_CONFIG_HOME") {
        Some(directory) => PathBuf::from(directory),
        None => {
            PathBuf::from(std::env::var_os("HOME").ok_or(ProfileError::NoHome)?).join(".config")
        }
    };
    Ok(base.join("countersign"))
}
