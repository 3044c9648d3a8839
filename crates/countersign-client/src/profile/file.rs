//! A profile's file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::Profile;
use crate::private_file::{FileProblem, PrivateFile};

const HEAD: &str =
    "# A profile of Countersign. It has private keys: whoever reads it can act in your name.\n\n";

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error(
        "there is no profile {0}; join with the link that your administrator sent: countersign join LINK"
    )]
    Missing(PathBuf),
    #[error(
        "the profile {path} has no {role}; join with an invitation for one: countersign join LINK"
    )]
    NoRole { path: PathBuf, role: &'static str },
    #[error(
        "the profile {path} can be read by others (mode {mode:o}) and is not used; its keys may be known: chmod 600 it, or join again"
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error("the profile {0} belongs to another user and is not used")]
    Foreign(PathBuf),
    #[error(
        "a profile's name has letters, digits, dots, dashes and underscores, and begins with none of the last three"
    )]
    Name,
    #[error("neither XDG_CONFIG_HOME nor HOME is set, so there is no place for a profile")]
    NoHome,
    /// Without the text of the file, which has secrets.
    #[error("the profile {path} is damaged in line {line}: {problem}")]
    Malformed {
        path: PathBuf,
        line: usize,
        problem: String,
    },
    #[error(
        "the keys of this profile are encrypted with a passphrase, and there is no terminal to ask for it; name a file in COUNTERSIGN_PASSPHRASE_FILE"
    )]
    Sealed,
    #[error("this is not the passphrase of the profile")]
    Passphrase,
    #[error("the passphrase in {path}: {problem}")]
    PassphraseFile { path: PathBuf, problem: String },
    #[error("the profile is damaged: {0}")]
    Damaged(&'static str),
    #[error("the profile {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

impl ProfileError {
    pub(super) fn damaged(member: &'static str) -> Self {
        Self::Damaged(member)
    }
}

#[derive(Debug, Clone)]
pub struct ProfileFile {
    file: PrivateFile,
}

impl ProfileFile {
    /// The profile of this name in the user's configuration directory.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins || !name.chars().all(plain) || name.len() > 64 {
            return Err(ProfileError::Name);
        }
        let directory = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
        let directory = match directory {
            Some(directory) => PathBuf::from(directory),
            None => {
                PathBuf::from(std::env::var_os("HOME").ok_or(ProfileError::NoHome)?).join(".config")
            }
        };
        Ok(Self::at(
            directory.join("countersign").join(format!("{name}.toml")),
        ))
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

    /// Changes the profile as it is now, or an empty one, and writes it back as a whole. Nobody sees it half written, and no
    /// change of another program is lost. It blocks, for a moment.
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

    /// Whether `update` would work now, and what the profile is: so that nothing is used up that could then not be kept.
    pub fn rehearse(&self) -> Result<Profile, ProfileError> {
        let _lock = self.file.lock().map_err(|error| self.io(error))?;
        let profile = self.read()?.unwrap_or_default();
        let part = self.file.write_part(&self.text(&profile)?);
        part.and_then(fs::remove_file)
            .map_err(|error| self.io(error))?;
        Ok(profile)
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
