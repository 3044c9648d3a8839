//! Files of other programs on disk: read whole, replaced whole, and only if they are still what was
//! read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// More than any configuration.
const MAX_BYTES: u64 = 4 << 20;

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum InstallRefusal {
    /// A file makes no sense.
    #[error("{0}")]
    Malformed(String),
    /// The command does not fit the agent or the user.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Failed(String),
}

/// A file as it is and as it should be. `None` is a file that does not exist.
#[derive(Clone)]
pub struct FileChange {
    /// As people know it; it may be a link.
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
    /// Whether every user of the machine has to be able to read it.
    pub public: bool,
}

impl FileChange {
    pub fn is_any(&self) -> bool {
        self.before != self.after
    }

    /// Replaces the file at once, with the mode and the owner that it had.
    pub fn write(&self) -> Result<(), InstallRefusal> {
        let failed = |error: io::Error| unwritable(&self.path, &error);
        let target = target_of(&self.path).map_err(failed)?;
        let directory = target.parent().unwrap_or(Path::new("/"));
        self.make(directory).map_err(failed)?;
        // Others that change it at the same time wait.
        let handle = File::open(directory).map_err(failed)?;
        handle.lock().map_err(failed)?;
        if read(&target)? != self.before {
            return Err(InstallRefusal::Failed(format!(
                "{} was changed in the meantime, so it was not written; run this again",
                self.path.display()
            )));
        }
        let Some(text) = &self.after else {
            return fs::remove_file(&target)
                .and_then(|()| handle.sync_all())
                .map_err(failed);
        };
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let part = directory.join(format!(".{name}.countersign-{}", std::process::id()));
        let written = (self.write_part(&part, &target, directory, text))
            .and_then(|()| fs::rename(&part, &target));
        if written.is_err() {
            let _unwritten = fs::remove_file(&part);
        }
        written.and_then(|()| handle.sync_all()).map_err(failed)
    }

    fn write_part(
        &self,
        part: &Path,
        target: &Path,
        directory: &Path,
        text: &str,
    ) -> io::Result<()> {
        let old = match fs::metadata(target) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(part)?;
        file.write_all(text.as_bytes())?;
        // A file that root creates for a user is that user's.
        let owner = match &old {
            Some(old) => (old.uid(), old.gid()),
            None => fs::metadata(directory).map(|parent| (parent.uid(), parent.gid()))?,
        };
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != owner && (old.is_some() || nix::unistd::geteuid().is_root()) {
            fchown(&file, Some(owner.0), Some(owner.1))?;
        }
        let mode = match &old {
            Some(old) => old.mode() & 0o7777,
            None if self.public => 0o644,
            None => 0o600,
        };
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()
    }

    /// Creates the directories that are missing.
    fn make(&self, directory: &Path) -> io::Result<()> {
        let missing = directory.ancestors().take_while(|path| !path.exists());
        let missing: Vec<_> = missing.collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let parent = fs::metadata(path.parent().unwrap_or(Path::new("/")))?;
            if nix::unistd::geteuid().is_root() {
                std::os::unix::fs::chown(path, Some(parent.uid()), Some(parent.gid()))?;
            }
            if self.public {
                fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(())
    }
}

fn unwritable(path: &Path, error: &io::Error) -> InstallRefusal {
    let help = match error.kind() {
        io::ErrorKind::PermissionDenied => "; system files need root: use sudo",
        _ => "",
    };
    let path = path.display();
    InstallRefusal::Failed(format!("{path} cannot be written: {error}{help}"))
}

/// The file that a link leads to, even if it does not exist yet.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    // As many as Linux follows.
    for _ in 0..40 {
        match fs::read_link(&target) {
            Ok(link) => target = target.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many links"))
}

/// The text of a file, or none if it does not exist.
pub fn read(path: &Path) -> Result<Option<String>, InstallRefusal> {
    let refused = |message: String| {
        let path = path.display();
        InstallRefusal::Malformed(format!("{path}: {message}; nothing was changed"))
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(format!("it cannot be read: {error}"))),
    };
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Err(refused("it is not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| refused(format!("it cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused("it is larger than 4 MiB".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = String::from_utf8_lossy(before).matches('\n').count() + 1;
        refused(format!("line {line}: it is not UTF-8 text"))
    })?;
    Ok(Some(text))
}
