//! Every change of a bit is refused.

use std::sync::LazyLock;

use countersign_e2e::{
    ArtifactHints, Ciphertext, DecisionContent, DeviceBundle, EnforcerBundle, Error, PairingAnswer,
    PairingClaims, PairingSecret, PlainPrompt, ReceivedAnswer, SealPurpose, SignedIntroduction,
    SignedStatement, accept, answer_by_link, open_prompt, receive_answer, seal_prompt,
    sign_decision,
};
use countersign_e2e::{AuthenticOffer, Fingerprint};
use countersign_protocol::decision::Verdict;
use countersign_protocol::json;
use proptest::prelude::*;
use proptest::sample::Index;

use super::people::{World, add, alice, bot, device, introduce, known, nonce, now, ruling, world};

const PROMPT: &str = r#"{"requestId": "01J2V9K3M2W1J5R6S7T8U9V0W1", "artifactType": "prompt.send",
    "createdAt": "2026-02-21T12:01:00Z", "target": "agentChat", "text": "Please stop.", "promptHashAlg": "SHA-256"}"#;

static WORLD: LazyLock<World> = LazyLock::new(world);

struct Texts {
    sealed: String,
    decision: String,
    prompt: String,
    statement: String,
    introduction: String,
    bundle: String,
    offer: String,
    answer: String,
}

static TEXTS: LazyLock<Texts> = LazyLock::new(|| {
    let world = &*WORLD;
    let with_hints = DecisionContent {
        hints: ArtifactHints {
            reason: Some("fine".to_owned()),
            ..ArtifactHints::default()
        },
        ..ruling(Verdict::Approve)
    };
    let random = &mut known("properties");
    let decision = sign_decision(&world.opened(), &with_hints, &world.phone, random).unwrap();
    let prompt = PlainPrompt::complete(PROMPT, &mut known("prompt salt")).unwrap();
    let prompt = seal_prompt(
        &world.phone,
        &alice(),
        &world.pinned_enforcer,
        &prompt,
        random,
    );
    let (tablet, tablet_bundle) = device("tablet");
    let offer = EnforcerBundle::new(&world.enforcer, bot(), &mut known("offer")).unwrap();
    let fingerprint = Fingerprint::of(&offer).unwrap();
    let authentic = AuthenticOffer::check(offer.clone(), &fingerprint).unwrap();
    let (secret, bundle) = (secret(), &world.phone_bundle);
    let (answer, _) = answer_by_link(
        &authentic,
        &secret,
        &nonce(),
        &alice(),
        bundle,
        &PairingClaims::default(),
        random,
    )
    .unwrap();
    Texts {
        sealed: world.sealed().to_text().unwrap(),
        decision,
        prompt: prompt.unwrap().to_text().unwrap(),
        statement: add(&world.phone, &tablet, &tablet_bundle).to_text(),
        introduction: introduce(world, &world.laptop).to_text(),
        bundle: bundle.to_text().unwrap(),
        offer: offer.to_text().unwrap(),
        answer: answer.to_text().unwrap(),
    }
});

fn secret() -> PairingSecret {
    PairingSecret::generate(&mut known("secret")).unwrap()
}

/// The text with one bit changed; None if the result is no text.
fn flip(text: &str, place: Index, bit: u8) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let place = place.index(bytes.len());
    bytes[place] ^= 1 << bit;
    String::from_utf8(bytes).ok()
}

fn open_sealed(text: &str) -> Result<(), Error> {
    WORLD.open(&WORLD.phone, text).map(drop)
}

fn accept_decision(text: &str) -> Result<(), Error> {
    let world = &*WORLD;
    let node = json::parse(text.as_bytes()).map_err(|error| Error::Json { what: "it", error })?;
    let asked = [&world.trust];
    accept(&node, &world.request(), &world.enforcer, &asked, now()).map(drop)
}

fn open_sealed_prompt(text: &str) -> Result<(), Error> {
    let world = &*WORLD;
    let node = json::parse(text.as_bytes()).map_err(|error| Error::Json { what: "it", error })?;
    let sealed = Ciphertext::parse(SealPurpose::Prompt, &node)?;
    let context = PlainPrompt::complete(PROMPT, &mut known("prompt salt"))?.context(alice(), bot());
    open_prompt(&world.enforcer, &bot(), &world.trust, &context, &sealed).map(drop)
}

fn follow_statement(text: &str) -> Result<(), Error> {
    let node = json::parse(text.as_bytes()).map_err(|error| Error::Json { what: "it", error })?;
    let signed = SignedStatement::parse(&node)?;
    WORLD.trust.clone().follow(&signed).map(drop)
}

fn accept_introduction(text: &str) -> Result<(), Error> {
    let node = json::parse(text.as_bytes()).map_err(|error| Error::Json { what: "it", error })?;
    let signed = SignedIntroduction::parse(&node)?;
    signed.accept(&WORLD.trust).map(drop)
}

fn prove_answer(text: &str) -> Result<(), Error> {
    let offer = EnforcerBundle::parse(&TEXTS.offer)?;
    let answer = PairingAnswer::parse(text)?;
    match receive_answer(&offer, &secret(), &nonce(), &alice(), answer)? {
        ReceivedAnswer::Proven(_) => Ok(()),
        ReceivedAnswer::ToCompare(_) => Err(Error::PairingProof),
    }
}

/// The original of every text is accepted: without this the properties below would say nothing.
#[test]
fn unaltered_texts_are_accepted() {
    open_sealed(&TEXTS.sealed).unwrap();
    accept_decision(&TEXTS.decision).unwrap();
    open_sealed_prompt(&TEXTS.prompt).unwrap();
    follow_statement(&TEXTS.statement).unwrap();
    accept_introduction(&TEXTS.introduction).unwrap();
    prove_answer(&TEXTS.answer).unwrap();
}

/// Cheap enough to try every bit: what parses has other keys, and so another id and another
/// fingerprint.
#[test]
fn every_bit_of_a_bundle_counts() {
    let offer = EnforcerBundle::parse(&TEXTS.offer).unwrap();
    let fingerprint = Fingerprint::of(&offer).unwrap();
    let all = |text: &str, check: &dyn Fn(&str)| {
        for place in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.as_bytes().to_vec();
                bytes[place] ^= 1 << bit;
                if let Ok(altered) = String::from_utf8(bytes) {
                    check(&altered);
                }
            }
        }
    };
    all(&TEXTS.offer, &|altered| {
        if let Ok(altered) = EnforcerBundle::parse(altered) {
            let refused = AuthenticOffer::check(altered, &fingerprint).unwrap_err();
            assert_eq!(refused, Error::Fingerprint);
        }
    });
    let bundle = &WORLD.phone_bundle;
    all(&TEXTS.bundle, &|altered| {
        if let Ok(altered) = DeviceBundle::parse(altered) {
            assert_ne!(altered, *bundle);
            assert_eq!(altered.same_keys(bundle), altered.id() == bundle.id());
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_sealed_artifact_with_a_changed_bit_does_not_open(place: Index, bit in 0_u8..8) {
        if let Some(altered) = flip(&TEXTS.sealed, place, bit) {
            prop_assert!(open_sealed(&altered).is_err(), "{altered}");
        }
    }

    #[test]
    fn a_decision_with_a_changed_bit_is_not_accepted(place: Index, bit in 0_u8..8) {
        if let Some(altered) = flip(&TEXTS.decision, place, bit) {
            prop_assert!(accept_decision(&altered).is_err(), "{altered}");
        }
    }

    #[test]
    fn a_prompt_with_a_changed_bit_does_not_open(place: Index, bit in 0_u8..8) {
        if let Some(altered) = flip(&TEXTS.prompt, place, bit) {
            prop_assert!(open_sealed_prompt(&altered).is_err(), "{altered}");
        }
    }

    #[test]
    fn a_statement_with_a_changed_bit_is_not_followed(place: Index, bit in 0_u8..8) {
        if let Some(altered) = flip(&TEXTS.statement, place, bit) {
            prop_assert!(follow_statement(&altered).is_err(), "{altered}");
        }
    }

    #[test]
    fn an_introduction_with_a_changed_bit_is_not_accepted(place: Index, bit in 0_u8..8) {
        if let Some(altered) = flip(&TEXTS.introduction, place, bit) {
            prop_assert!(accept_introduction(&altered).is_err(), "{altered}");
        }
    }

    #[test]
    fn an_answer_with_a_changed_bit_has_no_proof(place: Index, bit in 0_u8..8) {
        if let Some(altered) = flip(&TEXTS.answer, place, bit) {
            prop_assert!(prove_answer(&altered).is_err(), "{altered}");
        }
    }

    #[test]
    fn a_cut_text_is_refused(length: Index) {
        let cut = |text: &str| text[..length.index(text.len())].to_owned();
        prop_assert!(open_sealed(&cut(&TEXTS.sealed)).is_err());
        prop_assert!(accept_decision(&cut(&TEXTS.decision)).is_err());
        prop_assert!(follow_statement(&cut(&TEXTS.statement)).is_err());
        prop_assert!(accept_introduction(&cut(&TEXTS.introduction)).is_err());
        prop_assert!(prove_answer(&cut(&TEXTS.answer)).is_err());
        prop_assert!(DeviceBundle::parse(&cut(&TEXTS.bundle)).is_err());
    }
}
