//! The program that a command names.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Why there is nothing to run.
pub(super) struct NoProgram {
    pub(super) message: &'static str,
    /// As shells have it.
    pub(super) code: u8,
}

const NOT_FOUND: NoProgram = NoProgram {
    message: "command not found",
    code: 127,
};
const NOT_EXECUTABLE: NoProgram = NoProgram {
    message: "not executable",
    code: 126,
};

/// Finds the program before anyone is asked: the path that was approved is the one that is run.
pub(super) fn find_program(name: &str, directory: &Path) -> Result<PathBuf, NoProgram> {
    let is_file = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.is_file());
    let is_executable = |path: &Path| {
        let mode = path
            .metadata()
            .map(|metadata| metadata.permissions().mode());
        is_file(path) && mode.is_ok_and(|mode| mode & 0o111 != 0)
    };
    if name.contains('/') {
        let path = directory.join(name);
        return match (is_file(&path), is_executable(&path)) {
            (_, true) => Ok(path),
            (true, false) => Err(NOT_EXECUTABLE),
            (false, false) => Err(NOT_FOUND),
        };
    }
    let places = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&places).map(|place| directory.join(place).join(name));
    let mut found = None;
    for path in places.filter(|path| is_file(path)) {
        if is_executable(&path) {
            return Ok(path);
        }
        found = Some(NOT_EXECUTABLE);
    }
    Err(found.unwrap_or(NOT_FOUND))
}
