//! The reasons that a claim of a receipt is not proven.

use super::error::Error;

/// Why a claim is not proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofGap {
    /// Neither the file nor the anchors have what would prove it.
    Absent,
    /// It is false, or contradicts the rest.
    Failed(Error),
}

impl From<Error> for ProofGap {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
