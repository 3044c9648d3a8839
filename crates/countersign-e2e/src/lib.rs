//! End-to-end cryptography of the clients. It keeps a hostile gateway from reading content and from forging requests and
//! decisions. Pure: no I/O, no clock, no database; time and randomness are parameters. `docs/encryption.md` describes every
//! format and the order of the checks.
//!
//! | file | contents |
//! |---|---|
//! | `keys`, `bundle` | key pairs, public keys as they travel, device ids |
//! | `pairing`, `comparison`, `link` | how an enforcer and a device come to know each other's keys |
//! | `statement`, `trust`, `endorsement` | which devices speak for an approver, and how one is added |
//! | `introduction` | how a device tells the others the key of an enforcer |
//! | `artifact`, `seal`, `prompt`, `hints` | encryption and opening |
//! | `decision`, `accept`, `grant` | signing a decision, and what must hold before it is acted on |
//! | `outcome` | what the enforcer did with it, signed for the approver |
//!
//! A value that came from the network has another type before its checks than after: a [`DeviceBundle`] is only well formed,
//! a [`PinnedDevice`] was authenticated at pairing, a [`TrustedDevice`] is in force. A plaintext exists only once every check
//! has passed.

#![forbid(unsafe_code)]

#[macro_use]
mod getters;

mod accept;
mod artifact;
mod bundle;
mod comparison;
mod decision;
mod device_id;
mod encoding;
mod endorsement;
mod error;
mod extensions;
mod grant;
mod hints;
mod introduction;
mod keys;
mod link;
mod outcome;
mod pairing;
mod prompt;
mod random;
mod seal;
mod statement;
mod trust;

pub use accept::{
    OwnRequest, SignedVerdict, VerifiedApproval, VerifiedDecision, VerifiedRejection, accept,
    accept_again, verify_decision,
};
pub use artifact::{ArtifactContext, OpenedArtifact, PlainArtifact, open_artifact, seal_artifact};
pub use bundle::{DeviceBundle, DeviceName, EnforcerBundle, MAX_LABEL_CHARS, is_label};
pub use comparison::{ComparisonDigits, DigitComparison};
pub use countersign_protocol::decision::DecisionScope;
pub use decision::{DecisionContent, reject_unopened, sign_decision};
pub use device_id::{DeviceId, MAX_DEVICES};
pub use encoding::DEVICE_ID;
pub use endorsement::EndorsementRequest;
pub use error::Error;
pub use extensions::{DEVICES, OUTCOME, REPOSITORY, hide_repository, name_devices};
pub use grant::{Grant, GrantMatch, GrantOutcome, MAX_GRANT_LIFETIME};
pub use hints::ArtifactHints;
pub use introduction::{INTRODUCED_KEY, INTRODUCTION, SIGNED_INTRODUCTION};
pub use introduction::{Introduction, SignedIntroduction};
pub use keys::{DeviceKeys, EncryptionKey, EnforcerKeys};
pub use link::{Fingerprint, PairingLink, PairingSecret};
pub use outcome::{
    DenialCause, OutcomeEffect, OutcomeKey, OutcomeStatement, decision_digest, verify_outcome,
};
pub use pairing::{
    AuthenticOffer, PairingAnswer, PinnedDevice, PinnedEnforcer, ReceivedAnswer, answer_by_code,
    answer_by_link, receive_answer,
};
pub use prompt::{OpenedPrompt, PlainPrompt, PromptContext, open_prompt, seal_prompt};
pub use random::RandomSource;
pub use seal::{Ciphertext, MAX_RECIPIENTS, SealPurpose};
pub use statement::{DeviceStatement, SignedStatement, StatementChange};
pub use statement::{SIGNATURE, SIGNED, STATEMENT};
pub use trust::{DeviceTrust, TrustUpdate, TrustedDevice};
