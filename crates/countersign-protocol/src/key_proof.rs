//! Proof that the holder of a signing key registers it: the key signs a text that names its
//! approver. Without this proof, one approver could register the key of another, and claim its
//! signatures.

use time::Duration;

use super::error::{Error, Result};
use super::id::{ApproverId, SignerKeyId, TenantId};
use super::json::JsonNode;
use super::reader::{InvalidMember, MemberReader, ReadResult};
use super::signature::{PublicKey, Signature};
use super::timestamp::Timestamp;

/// The first line of the signed text, which no other signature covers.
const PURPOSE: &str = "countersign-key-registration-v1";
const NONCE_CHARS: (usize, usize) = (16, 128);
/// How far the time of a proof may be from the gateway's clock.
const PROOF_LIFETIME: Duration = Duration::minutes(5);

#[derive(Debug)]
pub struct KeyProof {
    pub nonce: String,
    /// As it was sent, because the signature covers this text.
    created_text: String,
    created_at: Timestamp,
    signature: Signature,
}

impl KeyProof {
    /// Reads the member `proof` of a registration.
    pub fn parse(node: &JsonNode<'_>) -> ReadResult<Self> {
        let mut reader = MemberReader::new(node, "/proof")?;
        let (min, max) = NONCE_CHARS;
        let nonce = reader.bounded_str("nonce", min, max)?.to_owned();
        // Without line feeds, so that no two proofs sign the same text.
        if !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            let expected = "16 to 128 visible ASCII characters";
            return Err(reader.refusal("nonce", expected));
        }
        let created_at = reader.timestamp("createdAt")?;
        let created_text = reader.str("createdAt")?.to_owned();
        let expected = "64 bytes in base64url: an Ed25519 signature";
        let signature = reader.parsed("signature", expected, Signature::parse)?;
        reader.finish()?;
        Ok(Self {
            nonce,
            created_text,
            created_at,
            signature,
        })
    }

    /// Checks that the key signed its own registration, just now.
    pub fn check(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &SignerKeyId,
        public_key: &PublicKey,
        now: Timestamp,
    ) -> Result<()> {
        if (now.inner() - self.created_at.inner()).abs() > PROOF_LIFETIME {
            let expected = "a time within 5 minutes of the gateway's clock";
            return Err(InvalidMember::timestamp("/proof/createdAt", expected).into());
        }
        let text = [
            PURPOSE,
            tenant.as_str(),
            approver.as_str(),
            key.as_str(),
            &public_key.to_text(),
            &self.nonce,
            &self.created_text,
        ]
        .join("\n");
        if public_key.verifies(text.as_bytes(), &self.signature) {
            return Ok(());
        }
        Err(Error::KeyProof { text })
    }
}
