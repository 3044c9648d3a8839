//! Reasons of refusals. Every message names the cause and, where a person can act, the remedy.

use super::device_id::DeviceId;
use super::rule_refusal::RuleRefusal;
use countersign_protocol::json::JsonError;
use countersign_protocol::reader::InvalidMember;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the system supplied no random bytes, so nothing can be encrypted; try again")]
    Random,

    #[error("{what} is not base64url without padding")]
    Base64 { what: &'static str },
    #[error("{what} should have {expected} bytes")]
    Length { what: &'static str, expected: usize },
    #[error("{what} is not strict JSON: {error}")]
    Json {
        what: &'static str,
        error: JsonError,
    },
    #[error("{what}: {0}", what = .0.document)]
    Member(#[from] InvalidMember),
    #[error("{what} is not in canonical form (RFC 8785); the client that made it has a defect")]
    NotCanonical { what: &'static str },
    #[error("{what} has a version that this client does not know (it knows 1); update this client")]
    Version { what: &'static str },
    #[error("{what} is a weak or malformed key; its owner must create new keys")]
    WeakKey { what: &'static str },
    #[error("a device's name should have 1 to 64 visible characters")]
    DeviceName,
    #[error("that isn't a pairing link; copy the whole link")]
    Link,

    #[error(
        "the enforcer's key is not the one in the link; someone may be interfering: start the pairing again, and if it \
         happens again, stop using this gateway"
    )]
    Fingerprint,
    #[error(
        "the approver's proof is wrong; someone may be interfering: revoke this pairing and start again"
    )]
    PairingProof,

    #[error("the statement is about another tenant or approver")]
    OtherApprover,
    #[error("the statement's signature does not verify under the device that it names")]
    StatementSignature,
    #[error("the new device has not signed the statement itself, so it may not own these keys")]
    Possession,
    #[error("device {0} is not known here; pair again, or add it from a known device")]
    UnknownDevice(DeviceId),
    #[error("device {0} was revoked; it must create new keys and be added again")]
    RevokedDevice(DeviceId),
    #[error("device {0} is known with other keys")]
    DeviceIdTaken(DeviceId),
    #[error("this approver already had a device; another one must be added from a device in use")]
    NotFirstDevice,
    #[error("that isn't the link of a new device; copy the whole link")]
    EndorsementLink,
    #[error(
        "the link is not for this device: make a new one on the new device, and open it on a device you already use"
    )]
    NotAsked,
    #[error(
        "that isn't a link for a new device; copy the whole link, from the page's address to its end"
    )]
    InvitationLink,
    #[error(
        "the new device's keys are not those that it sent; someone may be interfering: start again, and do not use this \
         gateway if it happens again"
    )]
    DeviceProof,
    #[error("an approver may have at most {limit} devices; revoke one first")]
    TooManyDevices { limit: usize },

    #[error("the team's state is refused: {0}")]
    Team(&'static str),
    #[error(
        "two states of the team contradict each other; someone may be interfering: tell its owners, then pair with \
         the team or join it again"
    )]
    TeamFork,
    #[error("the invited person's answer is not proven by the invitation; invite them again")]
    TeamProof,
    #[error("that isn't an invitation to a team; copy the whole link")]
    TeamLink,

    #[error("there is no device to encrypt for; pair with an approver first")]
    NoRecipients,
    #[error("a request can be encrypted for at most {limit} devices")]
    TooManyRecipients { limit: usize },
    #[error("encryption failed")]
    Encryption,
    #[error(
        "this is not encrypted for this device: the device was added later, or the sender does not know it"
    )]
    NotARecipient,
    #[error("a recipient is named twice")]
    RepeatedRecipient,
    #[error(
        "the content key does not open: it was not made by the paired sender, or not for this request, or it was altered"
    )]
    KeyNotOpened,
    #[error("the content does not open: it, its nonce or its list of recipients was altered")]
    ContentNotOpened,
    #[error("the content does not match its hash")]
    ContentHash,
    #[error("{member} inside the encrypted content differs from {member} outside it")]
    Mismatch { member: &'static str },

    #[error(
        "the decision is in the compact form, so it does not say which repository it is for or when it expires"
    )]
    CompactDecision,
    #[error("the decision's signature does not verify under the device that it names")]
    DecisionSignature,
    #[error("the decision is about another {what}")]
    OtherSubject { what: &'static str },
    #[error("the decision has expired; ask again")]
    DecisionExpired,
    #[error("the request expired before its decision arrived; ask again")]
    RequestExpired,
    #[error("the approver's note on the decision cannot be read ({0}); ask again")]
    Hints(Box<Error>),
    #[error(
        "this enforcer is not paired, so a reason cannot be encrypted for it; reject without one"
    )]
    HintsForNobody,
    #[error("a reason may have at most {limit} characters")]
    LongReason { limit: usize },
    #[error("the id of a choice may have at most {limit} characters")]
    LongAction { limit: usize },
    #[error("answers are 1 to 16 lists of 1 to 64 texts, each of 1 to 4000 characters")]
    OddAnswers,
    #[error("the stored decision allows nothing beyond its own request: {0}; ask again")]
    NoGrant(&'static str),

    #[error("{0}; it can still be rejected")]
    Rule(#[from] RuleRefusal),

    #[error("the request names no key to sign outcomes with; the enforcer runs an older version")]
    NoOutcomeKey,
    #[error(
        "the outcome is not signed by the machine that asked; someone may be interfering, so tell the gateway's operator"
    )]
    OutcomeSignature,
    #[error("an outcome may have at most {limit} characters; fewer people must be asked at once")]
    LongOutcome { limit: usize },
    #[error("the outcome is about another {what}")]
    OtherOutcome { what: &'static str },
    #[error("the decisions in the receipt do not lead to its outcome by its rule")]
    OtherCount,

    /// About the log of decisions and outcomes.
    #[error("{0}")]
    Log(&'static str),
}
