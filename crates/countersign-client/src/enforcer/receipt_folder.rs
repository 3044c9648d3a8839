//! The directory in which receipts are kept, one file for each request that was decided. A file is
//! never replaced, and only its owner may read it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::approval_request::ApprovalDenial;
use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use countersign_e2e::{OutcomeEffect, Receipt};

/// A disk that is away may keep a program waiting for ever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

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
    fn write(&self, mut receipt: Receipt) -> io::Result<()> {
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

impl Enforcer {
    /// Has a receipt of every request that is decided written there. None: nowhere.
    pub fn keep_receipts(&mut self, folder: Option<ReceiptFolder>) {
        self.receipts = folder;
    }

    /// Why the last receipt was not saved, if it was not.
    pub fn take_receipt_problem(&mut self) -> Option<String> {
        self.receipt_problem.take()
    }

    /// Writes a receipt. If that fails, a call that would be allowed is denied where the policy says
    /// so. Otherwise the failure is only told.
    pub(super) async fn write_receipt(
        &mut self,
        receipt: Result<Option<Receipt>>,
        effect: OutcomeEffect,
    ) -> Result<(), ApprovalDenial> {
        let Some(folder) = self.receipts.clone() else {
            return Ok(());
        };
        let (is_required, directory) = (folder.is_required, folder.directory.clone());
        let written = match receipt {
            Ok(Some(receipt)) => {
                let writing = spawn_blocking(move || folder.write(receipt));
                match timeout(WRITE_TIMEOUT, writing).await {
                    Ok(Ok(written)) => written,
                    Ok(Err(_)) | Err(_) => Err(io::ErrorKind::TimedOut.into()),
                }
            }
            Ok(None) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        };
        let Err(error) = written else { return Ok(()) };
        let problem = ClientError::NoReceipt {
            directory,
            problem: error.to_string(),
        };
        if is_required && effect == OutcomeEffect::Allowed {
            return Err(ApprovalDenial::NoReceipt(problem.to_string()));
        }
        self.receipt_problem = Some(problem.to_string());
        Ok(())
    }
}
