//! The people who work with an agent, in the answer that completes a pairing and in introductions.
//! A gateway that changes the list is noticed. `tests/vectors/operators.json` is for other
//! implementers; after a deliberate change, run this once with `WRITE_VECTORS=1`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_e2e::{
    AuthenticOffer, EnforcerBundle, Error, Fingerprint, Introduction, IntroductionClaims,
    MAX_OPERATORS, OperatorList, PairingAnswer, PairingClaims, PairingSecret, ReceivedAnswer,
    SignedIntroduction, TeamHead, TeamId, answer_by_code, answer_by_link, receive_answer,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{ApproverId, TextId as _};
use serde_json::{Value, json};

use super::people::{World, alice, bot, known, node, nonce, now, tenant, world};
use super::texts::{canon, check_published, parsed, unbase};

fn list(ids: &[&str]) -> OperatorList {
    let ids = ids.iter().map(|id| ApproverId::parse(id).unwrap());
    OperatorList::new(ids.collect()).unwrap()
}

fn claims(operators: Option<&OperatorList>) -> PairingClaims {
    PairingClaims {
        operators: operators.cloned(),
        team: None,
    }
}

struct PairingScene {
    world: World,
    offer: EnforcerBundle,
    secret: PairingSecret,
}

impl PairingScene {
    fn new() -> Self {
        let world = world();
        Self {
            offer: EnforcerBundle::new(&world.enforcer, bot(), &mut known("offer")).unwrap(),
            secret: PairingSecret::generate(&mut known("secret")).unwrap(),
            world,
        }
    }

    fn answer(&self, operators: Option<&OperatorList>) -> String {
        let fingerprint = Fingerprint::of(&self.offer).unwrap();
        let offer = AuthenticOffer::check(self.offer.clone(), &fingerprint).unwrap();
        let (bundle, random) = (&self.world.phone_bundle, &mut known("answer"));
        let (secret, nonce) = (&self.secret, nonce());
        let claims = &claims(operators);
        let answer = answer_by_link(&offer, secret, &nonce, &alice(), bundle, claims, random);
        answer.unwrap().0.to_text().unwrap()
    }

    fn receive(&self, answer: &str) -> Result<ReceivedAnswer, Error> {
        let answer = PairingAnswer::parse(answer)?;
        receive_answer(&self.offer, &self.secret, &nonce(), &alice(), answer)
    }

    fn digits(&self, operators: Option<&OperatorList>) -> (String, String) {
        let (bundle, random) = (&self.world.phone_bundle, &mut known("answer by code"));
        let claims = &claims(operators);
        let answer = answer_by_code(&self.offer, &nonce(), &alice(), bundle, claims, random);
        let (answer, comparison) = answer.unwrap();
        (answer.to_text().unwrap(), comparison.digits().to_string())
    }

    fn introduce(&self, operators: &OperatorList) -> SignedIntroduction {
        let (about, by) = ((&self.world.pinned_enforcer, None), &self.world.phone);
        let claims = &IntroductionClaims {
            operators: Some(operators.clone()),
            team: None,
        };
        let made = Introduction::new(&tenant(), &alice(), about, claims, now(), by.id());
        made.unwrap().sign(by).unwrap()
    }
}

fn changed(answer: &str, operators: Option<&Value>) -> String {
    let mut members = parsed(std::str::from_utf8(&unbase(&json!(answer))).unwrap());
    match operators {
        Some(operators) => members["operators"] = operators.clone(),
        None => drop(members.as_object_mut().unwrap().remove("operators")),
    }
    URL_SAFE_NO_PAD.encode(canon(&members))
}

/// Lists that must be refused, wherever they stand.
fn malformed() -> Vec<(&'static str, Value)> {
    let many: Vec<_> = (0..=MAX_OPERATORS).map(|it| format!("p{it}")).collect();
    vec![
        ("null", Value::Null),
        ("a text", json!("dave")),
        ("somebody twice", json!(["dave", "dave"])),
        ("an empty id", json!([""])),
        ("an id with a control character", json!(["da\nve"])),
        ("a number", json!([1])),
        ("17 people", json!(many)),
    ]
}

#[test]
fn an_enforcer_learns_the_operators_that_were_named() {
    let scene = PairingScene::new();
    let full: Vec<_> = (0..MAX_OPERATORS).map(|it| format!("p{it}")).collect();
    let full: Vec<_> = full.iter().map(String::as_str).collect();
    for named in [
        None,
        Some(list(&[])),
        Some(list(&["erin", "dave"])),
        Some(list(&full)),
    ] {
        let answer = scene.answer(named.as_ref());
        let ReceivedAnswer::Proven(pinned) = scene.receive(&answer).unwrap() else {
            panic!("it has a proof");
        };
        assert_eq!(pinned.operators(), named.as_ref());
        let (answer, digits) = scene.digits(named.as_ref());
        let ReceivedAnswer::ToCompare(received) = scene.receive(&answer).unwrap() else {
            panic!("it has no proof");
        };
        assert_eq!(received.digits().to_string(), digits);
        assert_eq!(received.confirmed_by_person().operators(), named.as_ref());
    }
}

#[test]
fn nobody_on_the_way_changes_drops_or_adds_operators() {
    let scene = PairingScene::new();
    let dave = list(&["dave"]);
    for (named, instead) in [
        (Some(&dave), None),
        (Some(&dave), Some(json!([]))),
        (Some(&dave), Some(json!(["erin"]))),
        (Some(&dave), Some(json!(["dave", "erin"]))),
        (None, Some(json!([]))),
        (None, Some(json!(["dave"]))),
    ] {
        let tampered = changed(&scene.answer(named), instead.as_ref());
        let refused = scene.receive(&tampered).unwrap_err();
        assert_eq!(refused, Error::PairingProof, "{instead:?}");
        let (answer, on_device) = scene.digits(named);
        let tampered = changed(&answer, instead.as_ref());
        let ReceivedAnswer::ToCompare(received) = scene.receive(&tampered).unwrap() else {
            panic!("it has no proof");
        };
        assert_ne!(received.digits().to_string(), on_device, "{instead:?}");
    }
    let signed = scene.introduce(&dave);
    signed.accept(&scene.world.trust).unwrap();
    assert_eq!(signed.introduction().operators(), Some(&dave));
    for instead in [None, Some(json!([])), Some(json!(["erin"]))] {
        let mut value = parsed(&signed.to_text());
        let statement = value["statement"].as_object_mut().unwrap();
        statement.remove("operators").unwrap();
        statement.extend(instead.map(|ids| ("operators".to_owned(), ids)));
        let tampered = SignedIntroduction::parse(&node(&value.to_string())).unwrap();
        let refused = tampered.accept(&scene.world.trust).unwrap_err();
        assert_eq!(refused, Error::StatementSignature);
    }
}

#[test]
fn an_enforcer_learns_the_team_that_was_named_and_nobody_on_the_way_changes_it() {
    let scene = PairingScene::new();
    let head = team_head(0);
    let fingerprint = Fingerprint::of(&scene.offer).unwrap();
    let offer = AuthenticOffer::check(scene.offer.clone(), &fingerprint).unwrap();
    let claims = &PairingClaims {
        operators: None,
        team: Some(head),
    };
    let (bundle, random) = (&scene.world.phone_bundle, &mut known("answer"));
    let (secret, nonce) = (&scene.secret, nonce());
    let answer = answer_by_link(&offer, secret, &nonce, &alice(), bundle, claims, random);
    let answer = answer.unwrap().0.to_text().unwrap();
    let ReceivedAnswer::Proven(pinned) = scene.receive(&answer).unwrap() else {
        panic!("it has a proof");
    };
    assert_eq!(pinned.team(), Some(&head));
    for other in [None, Some(team_head(1))] {
        let mut members = parsed(std::str::from_utf8(&unbase(&json!(answer))).unwrap());
        members.as_object_mut().unwrap().remove("team").unwrap();
        if let Some(other) = other {
            members["team"] = other.to_json();
        }
        let tampered = URL_SAFE_NO_PAD.encode(canon(&members));
        let refused = scene.receive(&tampered).unwrap_err();
        assert_eq!(refused, Error::PairingProof);
    }
}

fn team_head(seq: u32) -> TeamHead {
    let team = TeamId::parse("AAAAAAAAAAAAAAAAAAAAAA").unwrap();
    let digest = Sha256Hex::of(b"a state");
    TeamHead { team, seq, digest }
}

#[test]
fn the_vectors_are_what_the_code_computes() {
    let scene = PairingScene::new();
    let signed = scene.introduce(&list(&["dave"]));
    let rows = [list(&[]), list(&["erin", "dave", "Ümit"])].map(|named| {
        let (by_code, digits) = scene.digits(Some(&named));
        json!({
            "operators": named.ids(), "byLink": scene.answer(Some(&named)), "byCode": by_code, "digits": digits,
        })
    });
    let refused = malformed().into_iter().map(|(name, operators)| {
        let answer = changed(&scene.answer(None), Some(&operators));
        assert!(PairingAnswer::parse(&answer).is_err(), "{name}");
        let mut introduction = parsed(&signed.to_text());
        introduction["statement"]["operators"] = operators;
        let text = introduction.to_string();
        assert!(SignedIntroduction::parse(&node(&text)).is_err(), "{name}");
        json!({ "name": name, "answer": answer, "introduction": introduction })
    });
    let tampered = [None, Some(json!([])), Some(json!(["erin"]))].map(|instead| {
        let answer = changed(&scene.answer(Some(&list(&["dave"]))), instead.as_ref());
        assert!(scene.receive(&answer).is_err());
        answer
    });
    let vectors = json!({
        "about": "Operators (docs/encryption.md, Pairing and Introductions), with the keys and pairing of \
            encryption.json. answers: complete a pairing by link or by code. refused: malformed wherever it \
            stands. wrongProof: answers by link that were changed on the way. introduction: signed by the phone.",
        "answers": rows,
        "refused": refused.collect::<Value>(),
        "wrongProof": tampered,
        "introduction": { "signable": signed.introduction().text(), "signed": parsed(&signed.to_text()) },
    });
    check_published("operators.json", &vectors);
}
