//! The body of `decision.submit`, in the full or the compact form, and the judgement of its
//! signature.

use super::canonical::{Sha256Hex, canonical_without};
use super::envelope::IncomingEnvelope;
use super::error::{Error, Result};
use super::id::{RequestId, SignerKeyId};
use super::reader::{MemberReader, ReadResult};
use super::signature::{PublicKey, Signature};
use super::timestamp::Timestamp;
use super::words::words;

/// Longest nonce; a 256-bit one in base64url has 43 characters.
pub const MAX_NONCE_CHARS: usize = 512;

/// Longest nonce that is remembered as it is, in bytes; a longer one as its hash, so that it fits
/// into an index.
const MAX_COUNTED_BYTES: usize = 64;

words! {
    Verdict {
        Approve = "approve",
        Reject = "reject",
    }
    DecisionScope {
        Once = "once",
        Timebox = "timebox",
        Session = "session",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionForm {
    /// Names its exchange and when it ends.
    Full,
    /// Names the artifact alone.
    Compact,
}

#[derive(Debug, Clone)]
pub struct Decision {
    pub request_id: RequestId,
    pub form: DecisionForm,
    pub artifact_hash: Sha256Hex,
    pub verdict: Verdict,
    pub repo_ref: Option<String>,
    /// In the full form only.
    pub expires_at: Option<Timestamp>,
    pub signer_key_id: SignerKeyId,
    pub nonce: String,
    pub signature: Signature,
    pub signable: String,
    pub body: String,
    pub trace: Option<String>,
}

impl Decision {
    pub fn parse(envelope: &IncomingEnvelope<'_, '_>) -> ReadResult<Self> {
        let mut body = MemberReader::new(envelope.body, "/body")?;
        let full = body.object().get("sigAlg").is_some();
        let mut repo_ref = None;
        let mut expires_at = None;
        if full || envelope.about_itself {
            let request_id: RequestId = body.id("requestId")?;
            envelope.expect_request(&request_id)?;
        }
        if full {
            body.constant("artifactHashAlg", "SHA-256")?;
            repo_ref = Some(body.str("repoRef")?.to_owned());
            body.word::<DecisionScope>("scope")?;
            let at = body.timestamp("expiresAt")?;
            envelope.expect_expiry(at)?;
            expires_at = Some(at);
            body.constant("sigAlg", "Ed25519")?;
            body.optional_nested("policyHints")?;
        } else {
            body.optional_str("reason")?;
            body.optional_hash("decisionHash")?;
        }
        let artifact_hash = body.hash("artifactHash")?;
        let verdict = body.word("decision")?;
        let signer_key_id = body.id("signerKeyId")?;
        let nonce = body.bounded_str("nonce", 1, MAX_NONCE_CHARS)?.to_owned();
        let signature = body.signature("signature")?;
        let signable = canonical_without(body.object(), "signature");
        body.finish()?;
        Ok(Self {
            request_id: envelope.request_id.clone(),
            form: if full {
                DecisionForm::Full
            } else {
                DecisionForm::Compact
            },
            artifact_hash,
            verdict,
            repo_ref,
            expires_at,
            signer_key_id,
            nonce,
            signature,
            signable,
            body: envelope.body.raw.to_owned(),
            trace: envelope.trace.map(str::to_owned),
        })
    }
}

words! {
    /// Whether compact decisions are accepted (`decisions.compact`).
    CompactRule {
        /// As often as they are sent.
        Allow = "allow",
        /// Their nonce is recorded, and counts once per signing key.
        Registered = "registered",
        Refuse = "refuse",
    }
}

words! {
    /// How far the gateway vouches for a decision's signature.
    Verification {
        /// It verified under a key that was registered for the approver.
        Registered = "registered",
        /// The approver had no key.
        Unregistered = "none",
        /// The gateway did not look.
        Off = "off",
    }
}

words! {
    /// Whether decisions must verify (`decisions.verify`).
    Verify {
        /// Once an approver has a key, its decisions must verify.
        Registered = "registered",
        Required = "required",
        /// Never; the enforcer alone verifies.
        Off = "off",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    pub id: SignerKeyId,
    pub public_key: PublicKey,
    pub not_before: Option<Timestamp>,
    pub not_after: Option<Timestamp>,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// The basis of a judgement about a signature. It must still hold when the decision is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureTrust {
    Verified(Box<SigningKey>),
    /// The approver has no key yet.
    Unregistered,
    Unchecked,
}

impl SignatureTrust {
    pub fn verification(&self) -> Verification {
        match self {
            Self::Verified(_) => Verification::Registered,
            Self::Unregistered => Verification::Unregistered,
            Self::Unchecked => Verification::Off,
        }
    }
}

impl Decision {
    /// The nonce as it is recorded, if it is to count once. That of a full decision counts where
    /// its key is known; that of a compact one always, since its signature binds it to nothing
    /// else: an enforcer may know the key where the gateway does not.
    pub fn counted_nonce(&self, trust: &SignatureTrust, rule: CompactRule) -> Option<String> {
        let counts = match (self.form, rule) {
            (DecisionForm::Full, _) => trust.verification() == Verification::Registered,
            (DecisionForm::Compact, CompactRule::Allow) => false,
            (DecisionForm::Compact, CompactRule::Registered | CompactRule::Refuse) => true,
        };
        counts.then(|| {
            if self.nonce.len() <= MAX_COUNTED_BYTES {
                self.nonce.clone()
            } else {
                format!("sha256:{}", Sha256Hex::of(self.nonce.as_bytes()))
            }
        })
    }
}

pub fn judge_signature(
    decision: &Decision,
    keys: &[SigningKey],
    verify: Verify,
    now: Timestamp,
) -> Result<SignatureTrust> {
    match verify {
        Verify::Off => return Ok(SignatureTrust::Unchecked),
        Verify::Registered if keys.is_empty() => return Ok(SignatureTrust::Unregistered),
        Verify::Registered | Verify::Required => {}
    }
    let key = keys
        .iter()
        .find(|key| key.id == decision.signer_key_id)
        .ok_or(Error::SignatureInvalid)?;
    if key.revoked_at.is_some() {
        return Err(Error::KeyRevoked);
    }
    let current =
        key.not_before.is_none_or(|at| at <= now) && key.not_after.is_none_or(|at| now < at);
    let message = decision.signable.as_bytes();
    if !current || !key.public_key.verifies(message, &decision.signature) {
        return Err(Error::SignatureInvalid);
    }
    Ok(SignatureTrust::Verified(Box::new(key.clone())))
}
