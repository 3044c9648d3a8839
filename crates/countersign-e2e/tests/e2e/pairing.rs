//! A gateway in the middle of a pairing can stop it, and nothing else.

use countersign_e2e::{
    AuthenticOffer, DeviceBundle, EnforcerBundle, EnforcerKeys, Error, Fingerprint, PairingAnswer,
    PairingClaims, PairingLink, PairingSecret, ReceivedAnswer, answer_by_code, answer_by_link,
    receive_answer,
};
use countersign_protocol::id::{ApproverId, EnforcerId, TextId as _};
use countersign_protocol::pairing::{Nonce, PairingCode};

use super::people::{alice, bot, device, known, nonce, world};

struct Attempt {
    offer: EnforcerBundle,
    secret: PairingSecret,
    bundle: DeviceBundle,
}

fn attempt() -> Attempt {
    Attempt {
        offer: EnforcerBundle::new(&world().enforcer, bot(), &mut known("offer")).unwrap(),
        secret: PairingSecret::generate(&mut known("secret")).unwrap(),
        bundle: device("phone").1,
    }
}

impl Attempt {
    fn answer(&self) -> PairingAnswer {
        let fingerprint = Fingerprint::of(&self.offer).unwrap();
        let offer = AuthenticOffer::check(self.offer.clone(), &fingerprint).unwrap();
        let random = &mut known("answer");
        answer_by_link(
            &offer,
            &self.secret,
            &nonce(),
            &alice(),
            &self.bundle,
            &PairingClaims::default(),
            random,
        )
        .unwrap()
        .0
    }

    fn receive(&self, answer: PairingAnswer) -> Result<ReceivedAnswer, Error> {
        receive_answer(&self.offer, &self.secret, &nonce(), &alice(), answer)
    }
}

#[test]
fn a_link_pins_both_sides() {
    let attempt = attempt();
    let text = attempt.answer().to_text().unwrap();
    let answer = PairingAnswer::parse(&text).unwrap();
    assert_eq!(answer, attempt.answer());
    let ReceivedAnswer::Proven(pinned) = attempt.receive(answer).unwrap() else {
        panic!("it has a proof");
    };
    assert_eq!(*pinned.bundle(), attempt.bundle);
    let world = world();
    assert_eq!(world.pinned_enforcer.id(), &bot());
    let key = world.enforcer.encryption_key();
    assert_eq!(*world.pinned_enforcer.encryption_key(), key);
}

#[test]
fn a_link_is_read_as_printed_and_not_otherwise() {
    let attempt = attempt();
    let code = PairingCode::parse("7K3M-9QRT").unwrap();
    let fingerprint = Fingerprint::of(&attempt.offer).unwrap();
    let link = PairingLink {
        code,
        secret: PairingSecret::generate(&mut known("secret")).unwrap(),
        fingerprint,
    };
    assert!(!format!("{link:?}").contains('[') && format!("{link:?}").contains("redacted"));
    for page in [
        "https://gate.example",
        "https://gate.example/",
        "http://127.0.0.1:8080/page",
    ] {
        let text = link.expose(page);
        let again = PairingLink::parse(&text).unwrap();
        assert_eq!(*again.expose(page), *text);
        AuthenticOffer::check(attempt.offer.clone(), &again.fingerprint).unwrap();
        for length in 0..text.len() {
            // A link that was not copied whole is refused, unless only the page is missing.
            assert!(PairingLink::parse(&text[..length]).is_err(), "{length}");
        }
        assert!(PairingLink::parse(&format!("{}/x", *text)).is_err());
    }
}

#[test]
fn a_swapped_enforcer_has_another_fingerprint() {
    let attempt = attempt();
    let fingerprint = Fingerprint::of(&attempt.offer).unwrap();
    let attacker = EnforcerKeys::generate(&mut known("attacker")).unwrap();
    let other_id = EnforcerId::parse("other-bot").unwrap();
    let keys = world().enforcer;
    for swapped in [
        EnforcerBundle::new(&attacker, bot(), &mut known("offer")).unwrap(),
        EnforcerBundle::new(&keys, other_id, &mut known("offer")).unwrap(),
        EnforcerBundle::new(&keys, bot(), &mut known("another attempt")).unwrap(),
    ] {
        let refused = AuthenticOffer::check(swapped, &fingerprint).unwrap_err();
        assert_eq!(refused, Error::Fingerprint);
    }
}

#[test]
fn a_swapped_device_has_no_proof() {
    let attempt = attempt();
    let other = Attempt {
        bundle: device("attacker").1,
        secret: PairingSecret::generate(&mut known("guessed")).unwrap(),
        ..self::attempt()
    };
    let refused = attempt.receive(other.answer()).unwrap_err();
    assert_eq!(refused, Error::PairingProof);
    // The true proof beside the attacker's keys.
    let proof = attempt.answer().to_text().unwrap();
    let mut members: serde_json::Value = decode(&other.answer().to_text().unwrap());
    members["proof"] = decode(&proof)["proof"].clone();
    let grafted = PairingAnswer::parse(&encode(&members)).unwrap();
    assert_eq!(attempt.receive(grafted).unwrap_err(), Error::PairingProof);
}

fn decode(text: &str) -> serde_json::Value {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text);
    serde_json::from_slice(&bytes.unwrap()).unwrap()
}

fn encode(members: &serde_json::Value) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(super::texts::canon(members))
}

#[test]
fn a_proof_is_for_one_nonce_one_approver_and_one_offer() {
    let attempt = attempt();
    let (offer, secret) = (&attempt.offer, &attempt.secret);
    let answer = || attempt.answer();
    let bob = ApproverId::parse("bob").unwrap();
    let later = Nonce::from_bytes([8; 32]);
    let again = EnforcerBundle::new(&world().enforcer, bot(), &mut known("later")).unwrap();
    for refused in [
        receive_answer(offer, secret, &later, &alice(), answer()),
        receive_answer(offer, secret, &nonce(), &bob, answer()),
        receive_answer(&again, secret, &nonce(), &alice(), answer()),
    ] {
        assert_eq!(refused.unwrap_err(), Error::PairingProof);
    }
}

/// A proof that was taken away leaves the comparison, which the device that used the link does not
/// show.
#[test]
fn without_a_proof_nothing_is_pinned_before_a_person_compared() {
    let attempt = attempt();
    let (offer, bundle) = (&attempt.offer, &attempt.bundle);
    let random = &mut known("answer");
    let (answer, on_device) = answer_by_code(
        offer,
        &nonce(),
        &alice(),
        bundle,
        &PairingClaims::default(),
        random,
    )
    .unwrap();
    let ReceivedAnswer::ToCompare(on_enforcer) = attempt.receive(answer).unwrap() else {
        panic!("there was no proof");
    };
    assert_eq!(on_enforcer.digits(), on_device.digits());
    let shown = on_device.digits().to_string();
    let groups: Vec<_> = shown.split(' ').collect();
    assert!(
        groups.len() == 3 && groups.iter().all(|group| group.len() == 5),
        "{shown}"
    );
    assert_eq!(*on_enforcer.confirmed_by_person().bundle(), *bundle);
    assert_eq!(on_device.confirmed_by_person().id(), &bot());
}

/// Each side adds fresh randomness, so that digits cannot be searched for before the attempt: the
/// gateway knows both permanent keys, and chooses the nonce.
#[test]
fn digits_differ_with_everything_that_could_be_swapped() {
    let attempt = attempt();
    let digits = |offer: &EnforcerBundle, bundle: &DeviceBundle, random| {
        let (_, comparison) = answer_by_code(
            offer,
            &nonce(),
            &alice(),
            bundle,
            &PairingClaims::default(),
            &mut known(random),
        )
        .unwrap();
        comparison.digits().to_string()
    };
    let fresh = EnforcerBundle::new(&world().enforcer, bot(), &mut known("fresh")).unwrap();
    let attacker = EnforcerKeys::generate(&mut known("attacker")).unwrap();
    let attacker = EnforcerBundle::new(&attacker, bot(), &mut known("offer")).unwrap();
    let all = [
        digits(&attempt.offer, &attempt.bundle, "answer"),
        digits(&attempt.offer, &attempt.bundle, "another answer"),
        digits(&fresh, &attempt.bundle, "answer"),
        digits(&attacker, &attempt.bundle, "answer"),
        digits(&attempt.offer, &device("attacker").1, "answer"),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
}
