//! The body of `decision.submit`: a full Decision, or the compact form. Both keep their text and what was signed.

use super::canonical::{Sha256Hex, canonical_without};
use super::envelope::Incoming;
use super::id::{RequestId, SignerKeyId};
use super::reader::{Invalid, Reader};
use super::signature::{PublicKey, Signature};
use super::timestamp::Timestamp;

/// Longest nonce; a 256-bit one in base64url has 43 characters.
pub const MAX_NONCE_CHARS: usize = 512;

pub const SCOPES: [&str; 3] = ["once", "timebox", "session"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    /// Do not.
    Reject,
}

impl Verdict {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// A decision that is well-formed in itself.
#[derive(Debug, Clone)]
pub struct Decision {
    pub request_id: RequestId,
    pub artifact_hash: Sha256Hex,
    pub verdict: Verdict,
    pub repo_ref: Option<String>,
    /// When the decision itself ends, in the full form.
    pub expires_at: Option<Timestamp>,
    pub signer_key_id: SignerKeyId,
    pub nonce: String,
    pub signature: Signature,
    pub signable: String,
    pub body: String,
    pub trace: Option<String>,
}

impl Decision {
    pub fn parse(envelope: &Incoming<'_, '_>) -> Result<Self, Invalid> {
        let mut body = Reader::new(envelope.body, "/body")?;
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
            body.one_of("scope", &SCOPES)?;
            let at = body.timestamp("expiresAt")?;
            envelope.expect_expiry(at)?;
            expires_at = Some(at);
            body.constant("sigAlg", "Ed25519")?;
            body.optional_nested("policyHints")?;
        } else {
            body.optional_str("reason")?;
            if body.optional_str("decisionHash")?.is_some() {
                body.hash("decisionHash")?;
            }
        }
        let artifact_hash = body.hash("artifactHash")?;
        let verdict = match body.one_of("decision", &["approve", "reject"])? {
            "approve" => Verdict::Approve,
            _ => Verdict::Reject,
        };
        let signer_key_id = body.id("signerKeyId")?;
        let nonce = body.bounded_str("nonce", 1, MAX_NONCE_CHARS)?.to_owned();
        let signature = Signature::parse(body.str("signature")?)
            .ok_or_else(|| Invalid::shape("/body/signature", "64 bytes in base64url"))?;
        let signable = canonical_without(body.object(), "signature");
        body.finish()?;
        Ok(Self {
            request_id: envelope.request_id.clone(),
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

/// Whether decisions must verify (`decisions.verify`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// Once an approver has a key, its decisions must verify.
    Registered,
    Required,
    /// Never; the enforcer alone verifies.
    Off,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    pub id: SignerKeyId,
    pub public_key: PublicKey,
    pub not_before: Option<Timestamp>,
    /// Valid until.
    pub not_after: Option<Timestamp>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// What the judgement of a signature rests on; it must still hold when the decision is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    Verified(Box<SigningKey>),
    /// The approver has no key yet.
    Unregistered,
    /// Nobody asked.
    Unchecked,
}

/// Why a signature is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustError {
    /// It does not verify, or the key is unknown or outside its time.
    Invalid,
    Revoked,
}

/// Judges a decision's signature by the approver's keys.
pub fn judge_signature(
    decision: &Decision,
    keys: &[SigningKey],
    verify: Verify,
    now: Timestamp,
) -> Result<Trust, TrustError> {
    match verify {
        Verify::Off => return Ok(Trust::Unchecked),
        Verify::Registered if keys.is_empty() => return Ok(Trust::Unregistered),
        Verify::Registered | Verify::Required => {}
    }
    let key = keys
        .iter()
        .find(|key| key.id == decision.signer_key_id)
        .ok_or(TrustError::Invalid)?;
    if key.revoked_at.is_some() {
        return Err(TrustError::Revoked);
    }
    let current =
        key.not_before.is_none_or(|at| at <= now) && key.not_after.is_none_or(|at| now < at);
    if current
        && key
            .public_key
            .verifies(decision.signable.as_bytes(), &decision.signature)
    {
        Ok(Trust::Verified(Box::new(key.clone())))
    } else {
        Err(TrustError::Invalid)
    }
}
