//! Files beside the keys: readable by their owner only, replaced as a whole, and changed by one
//! program at a time.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use time::OffsetDateTime;
use zeroize::Zeroizing;

#[derive(Debug, Clone)]
pub(super) struct PrivateFile {
    path: PathBuf,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileProblem {
    #[error("others can read it (mode {0:o})")]
    Exposed(u32),
    #[error("it belongs to another user")]
    Foreign,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl PrivateFile {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The text; `None` if there is no such file.
    pub(super) fn read(&self) -> Result<Option<Zeroizing<String>>, FileProblem> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let metadata = file.metadata()?;
        if metadata.uid() != nix::unistd::geteuid().as_raw() {
            return Err(FileProblem::Foreign);
        }
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(FileProblem::Exposed(mode));
        }
        let mut text = Zeroizing::new(String::new());
        file.read_to_string(&mut text)?;
        Ok(Some(text))
    }

    /// Keeps other programs from changing the file until the lock is dropped. It blocks, for a
    /// moment.
    pub(super) fn lock(&self) -> io::Result<File> {
        let file = self.lock_file()?;
        file.lock()?;
        Ok(file)
    }

    /// The same without waiting. `None` if another program has the lock.
    pub(super) fn try_lock(&self) -> io::Result<Option<File>> {
        let file = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_file(&self) -> io::Result<File> {
        if let Some(directory) = self.path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(directory)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(self.path.with_extension("lock"))
    }

    /// Replaces the file. Readers never see it half written.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let part = self.write_part(text)?;
        fs::rename(&part, &self.path)?;
        match self.path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Writes the text beside the file, as `write` does first.
    pub(super) fn write_part(&self, text: &str) -> io::Result<PathBuf> {
        let part = self.path.with_extension("part");
        // A program that was killed may have left one.
        remove_if_present(&part)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(part)
    }

    /// Makes the file with all of its text in one step, and its directory if need be. False if there
    /// is one already.
    pub(super) fn create(&self, text: &str) -> io::Result<bool> {
        if let Some(directory) = self.path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(directory)?;
            // Another user could remove what must be remembered.
            let metadata = fs::metadata(directory)?;
            let is_own = metadata.uid() == nix::unistd::geteuid().as_raw();
            if !is_own || metadata.mode() & 0o022 != 0 {
                return Err(io::Error::other("others can write in its directory"));
            }
        }
        // Several may try at once, each with a part of its own.
        let part = self
            .path
            .with_extension(format!("{:x}.part", getrandom::u64()?));
        let mut options = OpenOptions::new();
        let mut file = (options.write(true).create_new(true).mode(0o600)).open(&part)?;
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        // A link fails if the name is taken, and never shows a file that is half written.
        let linked = written.and_then(|()| fs::hard_link(&part, &self.path));
        fs::remove_file(&part)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            linked => linked?,
        }
        if let Some(directory) = self.path.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(true)
    }

    /// Adds a line. A file of more than `most` bytes is moved aside first. To be called with a
    /// lock.
    pub(super) fn append(&self, line: &str, most: u64) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() > most) {
            fs::rename(&self.path, self.path.with_extension("log.old"))?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let mut file = options.open(&self.path)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    pub(super) fn written_at(&self) -> Option<OffsetDateTime> {
        let metadata = fs::metadata(&self.path).ok()?;
        metadata.modified().ok().map(OffsetDateTime::from)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        remove_if_present(&self.path)
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
