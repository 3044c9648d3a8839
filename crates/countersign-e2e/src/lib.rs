//! End-to-end cryptography of the clients. It keeps a hostile gateway from reading content and from
//! forging requests and decisions. `docs/encryption.md` of the repository describes every format and
//! the order of the checks.
//!
//! Countersign's enforcer and approver programs use the whole crate. The gateway uses it to check
//! statements about devices. Other clients in Rust can use it instead of writing the formats again.
//! It is pure: no I/O, no clock, no database. Time and randomness are parameters.
//!
//! An enforcer and the phone of an approver pair by a link:
//!
//! ```
//! use countersign_e2e::*;
//! use countersign_protocol::id::{ApproverId, EnforcerId, TextId as _};
//! use countersign_protocol::pairing::Nonce;
//!
//! # fn main() -> Result<(), Error> {
//! // A client asks the system for random bytes.
//! let mut random = |bytes: &mut [u8]| Ok::<_, Error>(bytes.fill(7));
//! let (ci, alice) = (EnforcerId::parse("ci").unwrap(), ApproverId::parse("alice").unwrap());
//! let nonce = Nonce::from_bytes([1; 32]); // The gateway chooses it for each attempt.
//!
//! let offer = EnforcerBundle::new(&EnforcerKeys::generate(&mut random)?, ci, &mut random)?;
//! let secret = PairingSecret::generate(&mut random)?;
//! let fingerprint = Fingerprint::of(&offer)?; // With the secret, it is in the link.
//!
//! let phone = DeviceKeys::generate(&mut random)?;
//! let bundle = DeviceBundle::of(&phone, DeviceName::parse("phone")?)?;
//! let authentic = AuthenticOffer::check(offer.clone(), &fingerprint)?;
//! let (answer, _enforcer) =
//!     answer_by_link(&authentic, &secret, &nonce, &alice, &bundle, &PairingClaims::default(), &mut random)?;
//!
//! let received = receive_answer(&offer, &secret, &nonce, &alice, answer)?;
//! assert!(matches!(received, ReceivedAnswer::Proven(device) if *device.bundle() == bundle));
//! # Ok(())
//! # }
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `keys`, `bundle`, `device_id` | key pairs, public keys as they travel, device ids |
//! | `pairing`, `comparison`, `link` | authentication of an enforcer and a device to each other |
//! | `statement`, `trust`, `endorsement`, `invitation` | the devices of an approver, and their additions |
//! | `introduction` | the key of an enforcer, from one device to the others |
//! | `artifact`, `seal`, `prompt`, `hints` | encryption and opening |
//! | `control` | orders of an approver to an enforcer |
//! | `decision`, `accept`, `grant` | signing a decision, and the checks before it is acted on |
//! | `rule`, `rule_decider`, `rule_refusal`, `comment_duty`, `votes` | the rule of a call that several people approve, and the count of their decisions |
//! | `team`, `team_head`, `team_seat`, `team_chain`, `team_consent`, `seat_source` | the members of a team and their devices, the chain of its states, joining, and who decides on a seat |
//! | `outcome` | the result at the enforcer, signed for the approver |
//! | `merkle`, `log_tiles`, `checkpoint`, `log_entry` | the log of decisions and outcomes, and the proofs from it |
//! | `receipt`, `receipt_teams`, `proof`, `part_proof`, `part_count`, `proof_gap`, `anchors` | everything about one call in a file, and its verification without the gateway |
//!
//! A value from the network has another type before its checks than after: a [`DeviceBundle`] is
//! only well formed, a [`PinnedDevice`] was authenticated at pairing, a [`TrustedDevice`] is in
//! force. A plaintext exists only once every check has passed.

#![forbid(unsafe_code)]

#[macro_use]
mod getters;

mod accept;
mod anchors;
mod artifact;
mod bundle;
mod checkpoint;
mod comment_duty;
mod comparison;
mod control;
mod decision;
mod device_id;
mod encoding;
mod endorsement;
mod error;
mod extensions;
mod grant;
mod hints;
mod introduction;
mod invitation;
mod keys;
mod link;
mod log_entry;
mod log_tiles;
mod merkle;
mod operators;
mod outcome;
mod pairing;
mod part_count;
mod part_proof;
mod prompt;
mod proof;
mod proof_gap;
mod random;
mod receipt;
mod receipt_teams;
mod rule;
mod rule_decider;
mod rule_refusal;
mod seal;
mod seat_source;
mod statement;
mod team;
mod team_chain;
mod team_consent;
mod team_head;
mod team_seat;
mod trust;
mod votes;

pub use accept::{
    OwnRequest, SignedVerdict, VerifiedApproval, VerifiedDecision, VerifiedRejection, accept,
    accept_again, hints_key, verify_decision,
};
pub use anchors::ReceiptAnchors;
pub use artifact::{ArtifactContext, OpenedArtifact, PlainArtifact, open_artifact, seal_artifact};
pub use bundle::{DeviceBundle, DeviceName, EnforcerBundle, MAX_LABEL_CHARS, is_label};
pub use checkpoint::{LogCheckpoint, LogOrigin, LogSigner, MAX_NOTE_BYTES, verifier_key};
pub use comment_duty::CommentDuty;
pub use comparison::{ComparisonDigits, DigitComparison};
pub use control::{ControlOrder, ControlParties, MAX_PAUSE_LIFETIME, SignedControl};
pub use countersign_protocol::decision::DecisionScope;
pub use decision::{DecisionContent, reject_unopened, sign_decision};
pub use device_id::{DeviceId, MAX_DEVICES};
pub use encoding::DEVICE_ID;
pub use endorsement::EndorsementRequest;
pub use error::Error;
pub use extensions::{
    DEVICES, LOG, OUTCOME, REPOSITORY, hide_repository, name_checkpoint, name_devices,
};
pub use grant::{Grant, GrantMatch, GrantOutcome, MAX_GRANT_LIFETIME, WordPattern};
pub use hints::{ArtifactHints, HintsKey};
pub use introduction::{INTRODUCED_KEY, INTRODUCTION, SIGNED_INTRODUCTION};
pub use introduction::{Introduction, IntroductionClaims, SignedIntroduction};
pub use invitation::{DeviceAnswer, DeviceInvitation, DeviceLink, SignedInvitation};
pub use invitation::{INVITATION, SIGNED_INVITATION};
pub use keys::{DeviceKeys, EncryptionKey, EnforcerKeys};
pub use link::{Fingerprint, PairingLink, PairingSecret};
pub use log_entry::{EntryKind, LogEntry, LogProof};
pub use log_tiles::{LogTiles, NeededTiles, TILE_WIDTH, TileId};
pub use merkle::{SubtreeSource, TreeHash, TreeState, verify_consistency, verify_inclusion};
pub use operators::{MAX_OPERATORS, OperatorList};
pub use outcome::{
    DenialCause, OutcomeEffect, OutcomeKey, OutcomeStatement, OutcomeSubject, decision_digest,
    verify_outcome,
};
pub use pairing::{
    AuthenticOffer, PairingAnswer, PairingClaims, PinnedDevice, PinnedEnforcer, ReceivedAnswer,
    answer_by_code, answer_by_link, receive_answer,
};
pub use prompt::{OpenedPrompt, PlainPrompt, PromptContext, open_prompt, seal_prompt};
pub use proof::{PartReport, ReceiptCheck, ReceiptFact, ReceiptReport};
pub use proof_gap::ProofGap;
pub use random::RandomSource;
pub use receipt::{MAX_STATEMENTS, Receipt, ReceiptPart};
pub use rule::{
    ApprovalRule, ArtifactRule, EscalationStep, MAX_RULE_PEOPLE, RULE, RuleAsk, RuleTerms, SetId,
};
pub use rule_decider::RuleDecider;
pub use rule_refusal::RuleRefusal;
pub use seal::{Ciphertext, MAX_RECIPIENTS, SealPurpose};
pub use seat_source::SeatSource;
pub use statement::{DeviceStatement, SignedStatement, StatementChange};
pub use statement::{SIGNATURE, SIGNED, STATEMENT};
pub use team::{MAX_TEAM_SEATS, TEAM_STATE, TeamContent, TeamMinimum, TeamState};
pub use team_chain::{SIGNED_TEAM_STATE, SignedTeamState, TeamChain};
pub use team_consent::{InviteId, SIGNED_CONSENT, SignedConsent, TeamConsent, TeamLink};
pub use team_head::{TeamHead, TeamId};
pub use team_seat::{MAX_STAND_IN_LIFETIME, StandIn, TeamSeat};
pub use trust::{DeviceTrust, TrustUpdate, TrustedDevice};
pub use votes::{ApproverVote, AskGap, VoteChoice, VoteCount, VoteState};
