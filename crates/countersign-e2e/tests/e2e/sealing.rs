//! Only a ciphertext of the paired enforcer opens, for this device and this request.

use countersign_e2e::{
    Ciphertext, DeviceTrust, EnforcerKeys, Error, OpenedPrompt, PinnedEnforcer, PlainArtifact,
    PlainPrompt, SealPurpose, open_artifact, open_prompt, seal_artifact, seal_prompt,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{ApproverId, EnforcerId, RequestId, TextId as _};
use serde_json::Value;

use super::people::{ARTIFACT, alice, bot, device, known, node, revoke, tenant, world};

const PROMPT: &str = r#"{"requestId": "01J2V9K3M2W1J5R6S7T8U9V0W1", "artifactType": "prompt.send",
    "createdAt": "2026-02-21T12:01:00Z", "target": "agentChat", "text": "Please stop.", "promptHashAlg": "SHA-256"}"#;

#[test]
fn an_artifact_opens_on_every_device_in_force_and_on_no_other() {
    let mut world = world();
    let text = world.sealed().to_text().unwrap();
    for keys in [&world.phone, &world.laptop] {
        let opened = world.open(keys, &text).unwrap();
        assert_eq!(*opened.artifact(), world.artifact);
        assert_eq!(opened.artifact().text(), world.artifact.text());
    }
    let (stranger, _) = device("stranger");
    assert_eq!(
        world.open(&stranger, &text).unwrap_err(),
        Error::NotARecipient
    );
    world
        .trust
        .follow(&revoke(&world.phone, &world.laptop))
        .unwrap();
    let later = world.sealed().to_text().unwrap();
    assert_eq!(
        world.open(&world.laptop, &later).unwrap_err(),
        Error::NotARecipient
    );
    world.open(&world.phone, &later).unwrap();
}

/// The hash travels in plain. A gateway that guesses the command must not be able to tell.
#[test]
fn the_hash_of_a_guessable_artifact_says_nothing() {
    let complete = |text: &str, salt| PlainArtifact::complete(text, &mut known(salt)).unwrap();
    let (first, second) = (complete(ARTIFACT, "first"), complete(ARTIFACT, "second"));
    assert_ne!(first.hash(), second.hash());
    let extended = ARTIFACT.replace(
        "\"payload\"",
        r#""extensions": {"org.example.a": 1.50, "countersign.salt": "mine"}, "payload""#,
    );
    let extended: Value = serde_json::from_str(complete(&extended, "first").text()).unwrap();
    let salted: Value = serde_json::from_str(first.text()).unwrap();
    let salt = &salted["extensions"]["countersign.salt"];
    assert_eq!(salt.as_str().unwrap().len(), 22);
    let expected = serde_json::json!({"org.example.a": 1.5, "countersign.salt": salt});
    assert_eq!(extended["extensions"], expected);
    let refused = PlainArtifact::complete(
        &ARTIFACT.replace("\"payload\"", r#""extensions": [], "payload""#),
        &mut known("salt"),
    );
    assert!(refused.unwrap_err().to_string().contains("/extensions"));
}

#[test]
fn nothing_is_sealed_to_nobody() {
    let world = world();
    let random = &mut known("seal");
    let nobody = DeviceTrust::without_devices(tenant(), alice());
    let refused = seal_artifact(&world.enforcer, &bot(), &world.artifact, &[&nobody], random);
    assert_eq!(refused.unwrap_err(), Error::NoRecipients);
}

#[test]
fn a_device_of_two_approvers_is_one_recipient() {
    let world = world();
    let random = &mut known("seal");
    let both = [&world.trust, &world.trust];
    let sealed = seal_artifact(&world.enforcer, &bot(), &world.artifact, &both, random).unwrap();
    let sealed: Value = serde_json::from_str(&sealed.to_text().unwrap()).unwrap();
    assert_eq!(sealed["recipients"].as_array().unwrap().len(), 2);
}

#[test]
fn a_failing_random_source_seals_nothing() {
    let world = world();
    for good in 0..4 {
        let mut left = good;
        let mut random = |bytes: &mut [u8]| {
            bytes.fill(9);
            left -= 1;
            if left < 0 { Err(Error::Random) } else { Ok(()) }
        };
        let sealed = seal_artifact(
            &world.enforcer,
            &bot(),
            &world.artifact,
            &[&world.trust],
            &mut random,
        );
        assert_eq!(sealed.unwrap_err(), Error::Random, "{good}");
    }
}

#[test]
fn an_artifact_of_another_enforcer_does_not_open() {
    let world = world();
    let attacker = EnforcerKeys::generate(&mut known("attacker")).unwrap();
    let random = &mut known("seal");
    let sealed = seal_artifact(&attacker, &bot(), &world.artifact, &[&world.trust], random);
    let refused = open_artifact(
        &world.phone,
        &world.pinned_enforcer,
        &world.context(),
        &sealed.unwrap(),
    );
    assert_eq!(refused.unwrap_err(), Error::KeyNotOpened);
    // Nor does the right key under another name.
    let other = EnforcerId::parse("other-bot").unwrap();
    let renamed = PinnedEnforcer::from_own_records(other, world.enforcer.encryption_key());
    let refused = open_artifact(&world.phone, &renamed, &world.context(), &world.sealed());
    assert_eq!(
        refused.unwrap_err(),
        Error::Mismatch {
            member: "enforcerId"
        }
    );
}

#[test]
fn what_is_said_in_plain_must_be_what_was_sealed() {
    let world = world();
    let sealed = world.sealed();
    let mut contexts = vec![world.context(); 5];
    contexts[0].request_id = RequestId::parse("01J2V8V3K6B2Z9X6G1V7Y2QK8J").unwrap();
    contexts[1].artifact_type = "plan.review".to_owned();
    contexts[2].artifact_hash = Sha256Hex::of(b"something else");
    contexts[3].expires_at = "2026-02-21T12:10:01Z".to_owned();
    // The same time, spelled otherwise.
    contexts[4].expires_at = "2026-02-21T12:10:00.0Z".to_owned();
    for context in contexts {
        let refused = open_artifact(&world.phone, &world.pinned_enforcer, &context, &sealed);
        assert_eq!(refused.unwrap_err(), Error::KeyNotOpened, "{context:?}");
    }
}

/// An enforcer that seals one thing and says another is refused by name, although all keys are
/// right.
#[test]
fn sealed_content_must_be_what_its_hash_and_context_say() {
    let world = world();
    let other = ARTIFACT.replace("build", "/");
    let other = PlainArtifact::complete(&other, &mut known("salt")).unwrap();
    let random = &mut known("seal");
    let sealed = seal_artifact(&world.enforcer, &bot(), &other, &[&world.trust], random).unwrap();
    let refused = open_artifact(
        &world.phone,
        &world.pinned_enforcer,
        &world.context(),
        &sealed,
    );
    assert_eq!(refused.unwrap_err(), Error::KeyNotOpened);
    let text = world.artifact.text();
    for altered in [
        text.replace("build", "/"),
        text.replace("widgets", "gadgets"),
    ] {
        assert_eq!(
            PlainArtifact::parse(altered.as_bytes()).unwrap_err(),
            Error::ContentHash
        );
    }
    let spaced = text.replace(',', ", ");
    let refused = PlainArtifact::parse(spaced.as_bytes()).unwrap_err();
    assert!(matches!(refused, Error::NotCanonical { .. }), "{refused}");
}

#[test]
fn recipients_cannot_be_dropped_added_reordered_renamed_or_repeated() {
    let world = world();
    let sealed: Value = serde_json::from_str(&world.sealed().to_text().unwrap()).unwrap();
    let open = |altered: &Value| world.open(&world.phone, &altered.to_string()).unwrap_err();
    let alter = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut altered = sealed.clone();
        change(altered["recipients"].as_array_mut().unwrap());
        open(&altered)
    };
    assert_eq!(alter(&|list| drop(list.pop())), Error::ContentNotOpened);
    assert_eq!(alter(&|list| list.reverse()), Error::ContentNotOpened);
    assert_eq!(
        alter(&|list| list.push(list[0].clone())),
        Error::RepeatedRecipient
    );
    assert_eq!(alter(&|list| drop(list.remove(0))), Error::NotARecipient);
    assert_eq!(alter(&Vec::clear), Error::NotARecipient);
    assert_eq!(
        alter(&|list| list[1]["deviceId"] = "AAAAAAAAAAAAAAAAAAAAAA".into()),
        Error::ContentNotOpened
    );
    let swap = alter(&|list| {
        let (first, second) = (list[0]["key"].clone(), list[1]["key"].clone());
        list[0]["key"] = second;
        list[1]["key"] = first;
    });
    assert_eq!(swap, Error::KeyNotOpened);
    let many = alter(&|list| {
        for place in 0..300 {
            let mut more = list[0].clone();
            more["deviceId"] = place.to_string().into();
            list.push(more);
        }
    });
    assert_eq!(many, Error::TooManyRecipients { limit: 256 });
}

#[test]
fn unknown_algorithms_and_members_are_refused_by_name() {
    let world = world();
    let sealed: Value = serde_json::from_str(&world.sealed().to_text().unwrap()).unwrap();
    for (member, value) in [
        ("alg", "A256GCM"),
        ("enc", "A128GCM"),
        ("tag", "AAAA"),
        ("sender", "AAAAAAAAAAAAAAAAAAAAAA"),
    ] {
        let mut altered = sealed.clone();
        altered[member] = value.into();
        let refused = world.open(&world.phone, &altered.to_string()).unwrap_err();
        assert!(
            refused.to_string().contains(&format!("/{member}")),
            "{refused}"
        );
    }
    for member in ["alg", "enc", "nonce", "data", "recipients"] {
        let mut altered = sealed.clone();
        altered.as_object_mut().unwrap().remove(member);
        let refused = world.open(&world.phone, &altered.to_string()).unwrap_err();
        assert!(
            refused.to_string().contains(&format!("/{member}")),
            "{refused}"
        );
    }
}

#[test]
fn an_encapsulated_key_of_small_order_is_refused() {
    let world = world();
    let mut sealed: Value = serde_json::from_str(&world.sealed().to_text().unwrap()).unwrap();
    sealed["recipients"][0]["encapsulated"] = "A".repeat(43).into();
    let refused = world.open(&world.phone, &sealed.to_string()).unwrap_err();
    assert_eq!(refused, Error::KeyNotOpened);
}

fn sealed_prompt() -> (PlainPrompt, Ciphertext) {
    let world = world();
    let prompt = PlainPrompt::complete(PROMPT, &mut known("prompt salt")).unwrap();
    let random = &mut known("prompt");
    let sealed = seal_prompt(
        &world.phone,
        &alice(),
        &world.pinned_enforcer,
        &prompt,
        random,
    );
    (prompt, sealed.unwrap())
}

#[test]
fn a_prompt_opens_at_its_enforcer_only_while_its_device_is_in_force() {
    let mut world = world();
    let (prompt, sealed) = sealed_prompt();
    let text = sealed.to_text().unwrap();
    let sealed = Ciphertext::parse(SealPurpose::Prompt, &node(&text)).unwrap();
    let context = prompt.context(alice(), bot());
    let OpenedPrompt {
        prompt: opened,
        device,
    } = open_prompt(&world.enforcer, &bot(), &world.trust, &context, &sealed).unwrap();
    assert_eq!(
        (opened.words(), opened.target()),
        ("Please stop.", "agentChat")
    );
    assert_eq!(device, world.phone.id());
    let attacker = EnforcerKeys::generate(&mut known("attacker")).unwrap();
    let refused = open_prompt(&attacker, &bot(), &world.trust, &context, &sealed);
    assert_eq!(refused.unwrap_err(), Error::KeyNotOpened);
    world
        .trust
        .follow(&revoke(&world.laptop, &world.phone))
        .unwrap();
    let refused = open_prompt(&world.enforcer, &bot(), &world.trust, &context, &sealed);
    assert_eq!(refused.unwrap_err(), Error::RevokedDevice(world.phone.id()));
}

#[test]
fn a_prompt_says_for_whom_from_whom_and_what_it_is() {
    let world = world();
    let (prompt, sealed) = sealed_prompt();
    let open = |context, sealed: &Ciphertext| {
        open_prompt(&world.enforcer, &bot(), &world.trust, &context, sealed).unwrap_err()
    };
    let context = || prompt.context(alice(), bot());
    let mut other = context();
    other.prompt_hash = Sha256Hex::of(b"another");
    assert_eq!(open(other, &sealed), Error::KeyNotOpened);
    let bob = ApproverId::parse("bob").unwrap();
    let refused = open(prompt.context(bob, bot()), &sealed);
    assert_eq!(
        refused,
        Error::Mismatch {
            member: "approverId"
        }
    );
    let other = EnforcerId::parse("other-bot").unwrap();
    let refused = open(prompt.context(alice(), other), &sealed);
    assert_eq!(
        refused,
        Error::Mismatch {
            member: "enforcerId"
        }
    );
    // In the name of the other device.
    let mut lent: Value = serde_json::from_str(&sealed.to_text().unwrap()).unwrap();
    lent["sender"] = world.laptop.id().to_string().into();
    let lent = lent.to_string();
    let lent = Ciphertext::parse(SealPurpose::Prompt, &node(&lent)).unwrap();
    assert_eq!(open(context(), &lent), Error::KeyNotOpened);
}

/// A ciphertext that is sent back, or used for another purpose, does not open.
#[test]
fn a_ciphertext_has_one_direction_and_one_purpose() {
    let world = world();
    let (_, sealed) = sealed_prompt();
    let reflected = open_artifact(
        &world.phone,
        &world.pinned_enforcer,
        &world.context(),
        &sealed,
    );
    assert_eq!(reflected.unwrap_err(), Error::NotARecipient);
    let text = sealed.to_text().unwrap();
    for purpose in [SealPurpose::Artifact, SealPurpose::Hints] {
        assert!(
            Ciphertext::parse(purpose, &node(&text)).is_err(),
            "{purpose:?}"
        );
    }
}
