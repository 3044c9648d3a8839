//! Files that are read without ever waiting for one: no pipe or device is opened.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// `None` if there is nothing there. Only an ordinary file is opened.
pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(nix::libc::O_NONBLOCK);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), NotADirectory | NotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() {
        Ok(Some(file))
    } else {
        Err(io::Error::other("it is not a file"))
    }
}

pub(super) fn bytes(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(content)
}
