//! The directory in which receipts are kept, one file for each request that was decided. A file is
//! never replaced, and only its owner may read it.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use crate::private_file::PrivateFile;
use countersign_e2e::Receipt;

/// Where receipts are kept, by the user's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptFolder {
    pub directory: PathBuf,
    /// Whether a call is denied if its receipt cannot be written.
    pub is_required: bool,
    /// Whether receipts have the request and the comments in plain.
    pub has_content: bool,
}

impl ReceiptFolder {
    /// The name begins with the time of the request and ends with its id.
    pub(super) fn write(&self, mut receipt: Receipt) -> io::Result<()> {
        let link = fs::symlink_metadata(&self.directory);
        if link.is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(io::Error::other("it is a symbolic link"));
        }
        let artifact = receipt.artifact.as_deref().unwrap_or_default();
        let artifact = serde_json::from_str::<Value>(artifact).unwrap_or_default();
        let created = artifact["createdAt"].as_str().unwrap_or_default();
        let created = created.replace(['-', ':'], "");
        let id = artifact["requestId"].as_str().unwrap_or_default();
        let path = self.directory.join(format!("{created}-{id}.json"));
        if !self.has_content {
            receipt.artifact = None;
            receipt.teams.clear();
            // Comments and grants may quote the request.
            receipt.parts.iter_mut().for_each(|it| it.hints_key = None);
        }
        let text = receipt.to_text().map_err(io::Error::other)?;
        match PrivateFile::at(path).create(&text) {
            Ok(false) => Err(io::ErrorKind::AlreadyExists.into()),
            created => created.map(drop),
        }
    }
}
