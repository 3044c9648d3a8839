//! Files that contain keys.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file atomically, readable by its owner only because it contains keys.
pub fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    // A link that somebody else left there is not followed.
    let _absent = std::fs::remove_file(&part);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&part, path)
}
