//! Orders of an approver to an enforcer: only for it, only by a device in force, and never a text
//! for the agent.

use super::people::{World, alice, bot, known, now, revoke, tenant, time, world};
use countersign_e2e::{
    ControlOrder, ControlParties, DeviceKeys, Error, OpenedPrompt, PlainPrompt, SignedControl,
    open_prompt, seal_prompt,
};
use countersign_protocol::id::{EnforcerId, RequestId, SessionId, TextId as _};
use serde_json::{Value, json};

fn vector() -> Value {
    serde_json::from_str(include_str!("../../../../tests/vectors/control.json")).unwrap()
}

fn parties() -> ControlParties {
    ControlParties {
        tenant: tenant(),
        approver: alice(),
        enforcer: bot(),
        at: now(),
    }
}

fn pause() -> ControlOrder {
    ControlOrder::Pause {
        session: None,
        until: time("2026-02-21T13:01:00Z"),
    }
}

fn content(control: &str) -> Value {
    json!({
        "requestId": "01J2V9K3M2W1J5R6S7T8U9V0W1", "artifactType": "prompt.send",
        "createdAt": "2026-02-21T12:01:00Z", "target": "agentChat", "promptHashAlg": "SHA-256",
        "control": serde_json::from_str::<Value>(control).unwrap(),
    })
}

/// Sealed by `keys`, and opened by the enforcer.
fn sent(world: &World, keys: &DeviceKeys, content: &Value) -> Result<OpenedPrompt, Error> {
    let prompt = PlainPrompt::complete(&content.to_string(), &mut known("prompt salt"))?;
    let random = &mut known("prompt");
    let sealed = seal_prompt(keys, &alice(), &world.pinned_enforcer, &prompt, random)?;
    let context = prompt.context(alice(), bot());
    open_prompt(&world.enforcer, &bot(), &world.trust, &context, &sealed)
}

fn signed(order: &ControlOrder, parties: &ControlParties, keys: &DeviceKeys) -> String {
    SignedControl::sign(order, parties, keys).unwrap().to_text()
}

#[test]
fn an_order_reaches_its_enforcer_as_it_was_signed_and_is_no_text() {
    let world = world();
    let session = SessionId::parse("0199a8e2-7c1b-7d30-9c55-3f1d2a6b8c90");
    let request_id = RequestId::parse("01J2V8V3K6B2Z9X6G1V7Y2QK8H").unwrap();
    for order in [
        ControlOrder::EndGrant { request_id },
        pause(),
        ControlOrder::Pause {
            session: session.clone(),
            until: time("2026-02-22T12:01:00Z"),
        },
        ControlOrder::Resume { session: None },
        ControlOrder::Resume { session },
    ] {
        let control = signed(&order, &parties(), &world.laptop);
        let opened = sent(&world, &world.laptop, &content(&control)).unwrap();
        assert_eq!(opened.device, world.laptop.id());
        assert_eq!(opened.prompt.words(), "");
        let control = opened.prompt.control().unwrap();
        assert_eq!(control.order(), &order);
        assert_eq!(control.parties(), &parties());
    }
}

#[test]
fn the_known_answer_is_what_is_signed_and_confirmed() {
    let world = world();
    let vector = vector();
    let control = signed(&pause(), &parties(), &world.phone);
    assert_eq!(vector["control"].as_str(), Some(control.as_str()));
    let opened = sent(&world, &world.phone, &content(&control)).unwrap();
    assert_eq!(vector["plaintext"].as_str(), Some(opened.prompt.text()));
    assert_eq!(vector["receipt"], opened.prompt.receipt());
}

#[test]
fn an_order_of_another_kind_device_or_for_somebody_else_is_refused() {
    let world = world();
    let good = signed(&pause(), &parties(), &world.phone);
    let send = |world: &World, keys, control: &str| sent(world, keys, &content(control)).map(drop);
    assert_eq!(send(&world, &world.phone, &good), Ok(()));
    // Another device of the same approver passes it on.
    let refused = send(&world, &world.laptop, &good).unwrap_err();
    assert_eq!(refused, Error::Mismatch { member: "by" });
    let other = ControlParties {
        enforcer: EnforcerId::parse("other-bot").unwrap(),
        ..parties()
    };
    let refused = send(
        &world,
        &world.phone,
        &signed(&pause(), &other, &world.phone),
    );
    assert_eq!(
        refused,
        Err(Error::Mismatch {
            member: "enforcerId"
        })
    );
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut control: Value = serde_json::from_str(&good).unwrap();
        change(&mut control);
        send(&world, &world.phone, &control.to_string()).unwrap_err()
    };
    let signature = Error::StatementSignature;
    assert_eq!(
        refused(&|it| it["statement"]["until"] = "2026-02-21T12:30:00Z".into()),
        signature
    );
    assert_eq!(
        refused(&|it| it["statement"]["approverId"] = "bob".into()),
        Error::OtherApprover
    );
    assert_eq!(
        refused(&|it| it["statement"]["tenantId"] = "other".into()),
        Error::OtherApprover
    );
    for change in [
        &|it: &mut Value| it["statement"]["until"] = "2026-02-22T12:01:01Z".into(),
        &|it: &mut Value| it["statement"]["until"] = "2026-02-21T12:01:00Z".into(),
        &|it: &mut Value| it["statement"]["order"] = "agent.kill".into(),
        &|it: &mut Value| it["statement"]["order"] = "grant.end".into(),
        &|it: &mut Value| it["statement"]["statement"] = "device.add".into(),
        &|it: &mut Value| it["statement"]["more"] = 1.into(),
        &|it: &mut Value| it["more"] = 1.into(),
    ] as [&dyn Fn(&mut Value); 7]
    {
        assert!(!matches!(refused(change), Error::StatementSignature));
    }
    let mut later = super::people::world();
    let revoked = revoke(&world.laptop, &world.phone);
    later.trust.follow(&revoked).unwrap();
    assert!(send(&later, &world.phone, &good).is_err());
}

#[test]
fn a_prompt_has_a_text_or_an_order_and_not_both() {
    let world = world();
    let mut both = content(&signed(&pause(), &parties(), &world.phone));
    both["text"] = "Stop.".into();
    assert!(sent(&world, &world.phone, &both).is_err());
    let mut neither = both.clone();
    neither.as_object_mut().unwrap().remove("text");
    neither.as_object_mut().unwrap().remove("control");
    assert!(sent(&world, &world.phone, &neither).is_err());
}
