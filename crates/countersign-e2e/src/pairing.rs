//! Pairing that the gateway cannot forge: both sides prove, or a person compares, that they saw the
//! same two bundles in the same attempt. The gateway chooses the nonce and carries the messages; it
//! is trusted with nothing.

use serde_json::json;

use super::bundle::{DEVICE, DeviceBundle, EnforcerBundle};
use super::comparison::{ComparisonDigits, DigitComparison};
use super::encoding::{self, canonical_text, parse_canonical, versioned};
use super::error::{Error, Result};
use super::keys::EncryptionKey;
use super::link::{Fingerprint, PairingSecret};
use super::operators::{OPERATORS, OperatorList};
use super::random::{RandomSource, draw};
use super::team_head::TeamHead;
use countersign_protocol::id::{ApproverId, EnforcerId};
use countersign_protocol::pairing::Nonce;

const ANSWER: &str = "the approver's bundle";
const TEAM: &str = "team";
const PROOF_PURPOSE: &str = "countersign pairing v1";

/// The message of a device that completes a pairing: its bundle, fresh randomness, who works with
/// the agent and which team is paired if the person said so, and a proof if it used the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingAnswer {
    bundle: DeviceBundle,
    random: [u8; 16],
    claims: PairingClaims,
    proof: Option<[u8; 32]>,
}

/// The word of a device's person on a pairing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairingClaims {
    /// The people who work with the agent.
    pub operators: Option<OperatorList>,
    /// The team that is paired, of which the person is an owner, instead of the person alone.
    pub team: Option<TeamHead>,
}

impl PairingAnswer {
    fn new(
        bundle: &DeviceBundle,
        claims: &PairingClaims,
        random: &mut impl RandomSource,
    ) -> Result<Self> {
        Ok(Self {
            bundle: bundle.clone(),
            random: *draw(random)?,
            claims: claims.clone(),
            proof: None,
        })
    }

    pub fn parse(text: &str) -> Result<Self> {
        let bytes = encoding::decode(ANSWER, text)?;
        let node = parse_canonical(ANSWER, &bytes)?;
        let mut reader = versioned(ANSWER, &node)?;
        reader.rename(DEVICE);
        let bundle = DeviceBundle::read(&mut reader)?;
        reader.rename(ANSWER);
        let random = reader.str("random")?;
        let proof = reader.optional_str("proof")?;
        let expected = "the head of a team";
        let claims = PairingClaims {
            operators: OperatorList::read(&mut reader)?,
            team: reader.optional_as(TEAM, expected, TeamHead::read)?,
        };
        reader.finish()?;
        let what = "the approver's proof";
        let proof = proof.map(|text| encoding::decode_array(what, text));
        Ok(Self {
            bundle,
            random: encoding::decode_array("the approver's random value", random)?,
            claims,
            proof: proof.transpose()?,
        })
    }

    pub fn to_text(&self) -> Result<String> {
        self.spell(self.proof.as_ref())
    }

    fn spell(&self, proof: Option<&[u8; 32]>) -> Result<String> {
        let mut members = self.bundle.members();
        members["random"] = encoding::encode(&self.random).into();
        // Enforcers that do not know these members refuse them, so they are there only if they were
        // asked for.
        if let Some(operators) = &self.claims.operators {
            members[OPERATORS] = json!(operators.ids());
        }
        if let Some(team) = &self.claims.team {
            members[TEAM] = team.to_json();
        }
        if let Some(proof) = proof {
            members["proof"] = encoding::encode(proof).into();
        }
        let text = canonical_text(ANSWER, &members)?;
        Ok(encoding::encode(text.as_bytes()))
    }
}

/// The values that both sides must have seen alike.
fn transcript(
    offer: &EnforcerBundle,
    nonce: &Nonce,
    approver: &ApproverId,
    answer: &PairingAnswer,
) -> Result<String> {
    let members = json!({
        "nonce": nonce.as_str(),
        "approverId": approver.as_str(),
        "enforcer": offer.to_text()?,
        "approver": answer.spell(None)?,
    });
    canonical_text("the pairing", &members)
}

fn provable(transcript: &str) -> Vec<u8> {
    [PROOF_PURPOSE, transcript].concat().into_bytes()
}

/// An enforcer's bundle that has the fingerprint of the link.
#[derive(Debug, Clone)]
pub struct AuthenticOffer(EnforcerBundle);

impl AuthenticOffer {
    pub fn check(offer: EnforcerBundle, fingerprint: &Fingerprint) -> Result<Self> {
        if Fingerprint::of(&offer)?.equals(fingerprint) {
            Ok(Self(offer))
        } else {
            Err(Error::Fingerprint)
        }
    }
}

/// An enforcer whose key a device has authenticated: at pairing, or as another device of its
/// approver introduced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedEnforcer {
    id: EnforcerId,
    encryption: EncryptionKey,
}

impl PinnedEnforcer {
    fn new(offer: &EnforcerBundle) -> Self {
        Self {
            id: offer.enforcer_id().clone(),
            encryption: *offer.encryption_key(),
        }
    }

    /// As this device stored it itself, or as a signature that is verified with it says.
    pub fn from_own_records(id: EnforcerId, encryption: EncryptionKey) -> Self {
        Self { id, encryption }
    }

    pub fn id(&self) -> &EnforcerId {
        &self.id
    }

    pub fn encryption_key(&self) -> &EncryptionKey {
        &self.encryption
    }
}

/// A device that an enforcer has authenticated at pairing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedDevice {
    approver: ApproverId,
    bundle: DeviceBundle,
    claims: PairingClaims,
}

impl PinnedDevice {
    getters! {
        pub ref approver: ApproverId;
        pub ref bundle: DeviceBundle;
    }

    /// The people who work with the agent, if its person has said so.
    pub fn operators(&self) -> Option<&OperatorList> {
        self.claims.operators.as_ref()
    }

    /// The team that its person pairs, instead of the person alone.
    pub fn team(&self) -> Option<&TeamHead> {
        self.claims.team.as_ref()
    }
}

/// On the device, from a link: the fingerprint has authenticated the enforcer, and the proof
/// authenticates this device.
pub fn answer_by_link(
    offer: &AuthenticOffer,
    secret: &PairingSecret,
    nonce: &Nonce,
    approver: &ApproverId,
    bundle: &DeviceBundle,
    claims: &PairingClaims,
    random: &mut impl RandomSource,
) -> Result<(PairingAnswer, PinnedEnforcer)> {
    let mut answer = PairingAnswer::new(bundle, claims, random)?;
    let transcript = transcript(&offer.0, nonce, approver, &answer)?;
    answer.proof = Some(secret.prove(&provable(&transcript)));
    Ok((answer, PinnedEnforcer::new(&offer.0)))
}

/// On the device, from a typed code: neither side is authenticated until the digits were compared.
pub fn answer_by_code(
    offer: &EnforcerBundle,
    nonce: &Nonce,
    approver: &ApproverId,
    bundle: &DeviceBundle,
    claims: &PairingClaims,
    random: &mut impl RandomSource,
) -> Result<(PairingAnswer, DigitComparison<PinnedEnforcer>)> {
    let answer = PairingAnswer::new(bundle, claims, random)?;
    let transcript = transcript(offer, nonce, approver, &answer)?;
    let digits = ComparisonDigits::of(&transcript, nonce);
    Ok((
        answer,
        DigitComparison::new(digits, PinnedEnforcer::new(offer)),
    ))
}

/// An answer as the enforcer got it.
#[derive(Debug)]
pub enum ReceivedAnswer {
    Proven(PinnedDevice),
    ToCompare(DigitComparison<PinnedDevice>),
}

/// On the enforcer. A wrong proof is refused: it does not fall back to the comparison.
pub fn receive_answer(
    offer: &EnforcerBundle,
    secret: &PairingSecret,
    nonce: &Nonce,
    approver: &ApproverId,
    answer: PairingAnswer,
) -> Result<ReceivedAnswer> {
    let transcript = transcript(offer, nonce, approver, &answer)?;
    let pinned = PinnedDevice {
        approver: approver.clone(),
        bundle: answer.bundle,
        claims: answer.claims,
    };
    match answer.proof {
        Some(proof) if secret.proves(&provable(&transcript), &proof) => {
            Ok(ReceivedAnswer::Proven(pinned))
        }
        Some(_) => Err(Error::PairingProof),
        None => {
            let digits = ComparisonDigits::of(&transcript, nonce);
            Ok(ReceivedAnswer::ToCompare(DigitComparison::new(
                digits, pinned,
            )))
        }
    }
}
