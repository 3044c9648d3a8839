//! Every statement that does not count: each refusal names the member, and nothing is written.

use countersign::e2e::StatementChange;
use reqwest::Method;
use serde_json::{Value, json};

use super::DeviceScene;
use crate::support::devices::{Device, Owner};
use crate::support::{Answer, now, with, without};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_do_not_verify_are_refused_and_change_nothing() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let revoked = owner.another(client, &phone, "revoked").await;
    let gone = owner.revoke(&phone, revoked.keys.id());
    owner.delete(client, &revoked.id(), &gone).await.expect(200);
    let (new, stranger) = (Device::new("new"), Device::new("stranger"));
    let before = scene.cluster.database.counts().await;
    let good = parsed(&owner.add(&phone, &new));
    let other = parsed(&owner.add(&phone, &stranger));
    let set = |pointer: &str, value: &Value| with(&good, pointer, value.clone());
    let cases: Vec<(Value, u16, &str, &str)> = vec![
        (
            parsed(&owner.add(&stranger, &new)),
            403,
            "SIGNATURE_INVALID",
            "/statement/by",
        ),
        (
            parsed(&owner.add(&revoked, &new)),
            403,
            "KEY_REVOKED",
            "/statement/by",
        ),
        (
            parsed(&owner.add(&phone, &revoked)),
            403,
            "KEY_REVOKED",
            "/statement/bundle",
        ),
        (
            parsed(&owner.add(&revoked, &revoked)),
            403,
            "KEY_REVOKED",
            "/statement/by",
        ),
        // A second first device.
        (
            parsed(&owner.add(&new, &new)),
            403,
            "FORBIDDEN",
            "/statement/by",
        ),
        (
            set("/signature", &other["signature"]),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            set("/signature", &good["possession"]),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            set("/possession", &other["possession"]),
            403,
            "SIGNATURE_INVALID",
            "/possession",
        ),
        (
            set("/possession", &good["signature"]),
            403,
            "SIGNATURE_INVALID",
            "/possession",
        ),
        (
            without(&good, "/possession"),
            403,
            "SIGNATURE_INVALID",
            "/possession",
        ),
        // The signature covers something else.
        (
            set("/statement/at", &json!(crate::support::in_time(1))),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            set("/statement/bundle", &other["statement"]["bundle"]),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            set("/statement/by", &json!(stranger.id())),
            403,
            "SIGNATURE_INVALID",
            "/statement/by",
        ),
        (
            set("/statement/tenantId", &json!("other")),
            400,
            "VALIDATION",
            "/statement/tenantId",
        ),
        (
            set("/statement/approverId", &json!("bob")),
            400,
            "VALIDATION",
            "/statement/approverId",
        ),
        (
            parsed(&owner.revoke(&phone, new.keys.id())),
            400,
            "VALIDATION",
            "/statement/statement",
        ),
    ];
    for (body, status, code, pointer) in cases {
        let answer = scene.post(&body.to_string()).await;
        let answer = answer.refused_at(status, code, pointer);
        assert!(answer.detail("expected").is_string(), "{answer:?}");
    }
    // The same of revocations.
    let signed = |by: &Device, id: &Device| owner.revoke(by, id.keys.id());
    let forged = with(
        &parsed(&signed(&phone, &new)),
        "/signature",
        good["signature"].clone(),
    );
    let cases: [(String, u16, &str, &str); 6] = [
        (
            signed(&stranger, &new),
            403,
            "SIGNATURE_INVALID",
            "/statement/by",
        ),
        (signed(&revoked, &new), 403, "KEY_REVOKED", "/statement/by"),
        (forged.to_string(), 403, "SIGNATURE_INVALID", "/signature"),
        (
            signed(&phone, &stranger),
            400,
            "VALIDATION",
            "/statement/deviceId",
        ),
        (good.to_string(), 400, "VALIDATION", "/statement/statement"),
        (
            Owner::new(&owner.tenant, "bob").revoke(&phone, new.keys.id()),
            400,
            "VALIDATION",
            "/statement/approverId",
        ),
    ];
    for (text, status, code, pointer) in cases {
        let answer = owner.delete(client, &new.id(), &text).await;
        answer.refused_at(status, code, pointer);
    }
    assert_eq!(scene.cluster.database.counts().await, before);
    scene.post(&good.to_string()).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_device_signs_for_itself_and_for_no_other() {
    let scene = DeviceScene::new(1).await;
    let owner = &scene.owner;
    let (phone, other) = (Device::new("phone"), Device::new("other"));
    let good = parsed(&owner.add(&phone, &phone));
    for (body, code, pointer) in [
        (
            parsed(&owner.add(&other, &phone)),
            "SIGNATURE_INVALID",
            "/statement/by",
        ),
        (
            with(
                &good,
                "/signature",
                parsed(&owner.add(&other, &other))["signature"].clone(),
            ),
            "SIGNATURE_INVALID",
            "/signature",
        ),
    ] {
        let answer = scene.post(&body.to_string()).await;
        answer.refused_at(403, code, pointer);
    }
    let gone = owner.revoke(&phone, other.keys.id());
    let answer = owner.delete(&scene.alice.client, &other.id(), &gone).await;
    answer.refused_at(403, "SIGNATURE_INVALID", "/statement/by");
    scene.post(&good.to_string()).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_statements_name_the_member_and_what_was_expected() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let new = Device::new("new");
    let good = parsed(&owner.add(&phone, &new));
    let before = scene.cluster.database.counts().await;
    let cut = |pointer: &str| {
        let text = good.pointer(pointer).unwrap().as_str().unwrap();
        with(&good, pointer, json!(&text[1..]))
    };
    let cases = [
        (json!([]), "VALIDATION", ""),
        (without(&good, "/statement"), "VALIDATION", "/statement"),
        (without(&good, "/signature"), "VALIDATION", "/signature"),
        (
            with(&good, "/surprise", json!(1)),
            "VALIDATION",
            "/surprise",
        ),
        (
            with(&good, "/statement/surprise", json!(1)),
            "VALIDATION",
            "/statement/surprise",
        ),
        (
            with(&good, "/statement/deviceId", json!(new.id())),
            "VALIDATION",
            "/statement/deviceId",
        ),
        (
            with(&good, "/statement/v", json!(2)),
            "UNSUPPORTED",
            "/statement/v",
        ),
        (without(&good, "/statement/v"), "VALIDATION", "/statement/v"),
        (
            with(&good, "/statement/statement", json!("device.keep")),
            "VALIDATION",
            "/statement/statement",
        ),
        (
            with(&good, "/statement/at", json!("now")),
            "TIMESTAMP",
            "/statement/at",
        ),
        (
            without(&good, "/statement/at"),
            "VALIDATION",
            "/statement/at",
        ),
        (
            with(&good, "/statement/tenantId", json!("")),
            "VALIDATION",
            "/statement/tenantId",
        ),
        (
            with(&good, "/statement/by", json!("phone")),
            "VALIDATION",
            "/statement/by",
        ),
        (cut("/statement/by"), "VALIDATION", "/statement/by"),
        (cut("/statement/bundle"), "VALIDATION", "/statement/bundle"),
        (
            with(&good, "/statement/bundle", json!("e30")),
            "VALIDATION",
            "/statement/bundle",
        ),
        (
            with(&good, "/statement/bundle", json!(7)),
            "VALIDATION",
            "/statement/bundle",
        ),
        (cut("/signature"), "VALIDATION", "/signature"),
        (cut("/possession"), "VALIDATION", "/possession"),
        (
            with(&good, "/possession", json!(null)),
            "VALIDATION",
            "/possession",
        ),
    ];
    for (body, code, pointer) in cases {
        let answer = scene.post(&body.to_string()).await;
        let answer = answer.refused_at(400, code, pointer);
        assert!(answer.detail("expected").is_string(), "{answer:?}");
    }
    let gone = parsed(&owner.revoke(&phone, new.keys.id()));
    let short = with(&gone, "/statement/deviceId", json!("short"));
    let answer = owner.delete(client, &new.id(), &short.to_string()).await;
    answer.refused_at(400, "VALIDATION", "/statement/deviceId");
    let answer = owner.delete(client, "short", &gone.to_string()).await;
    let answer = answer.refused(400, "VALIDATION");
    assert_eq!(answer.detail("parameter"), "deviceId");
    let twice = good.to_string().replace("\"v\":1", "\"v\":1,\"v\":1");
    scene.post(&twice).await.refused(400, "CANONICALIZATION");
    scene.post("{").await.refused(400, "MALFORMED_JSON");
    let call = client.call(Method::POST, &owner.path());
    let answer = call.bytes(good.to_string().into_bytes()).send().await;
    answer.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    // As long as it may be, and one byte more.
    let padded = |length: usize| {
        let text = good.to_string();
        let blank = " ".repeat(length - text.len());
        format!("{{{blank}{}", &text[1..])
    };
    let too_long: Answer = scene.post(&padded(8_193)).await;
    let too_long = too_long.refused(413, "TOO_LARGE");
    assert_eq!(too_long.detail("limit"), 8_192);
    assert_eq!(scene.cluster.database.counts().await, before);
    scene.post(&padded(8_192)).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_of_a_disabled_tenant_is_not_added() {
    let scene = DeviceScene::new(1).await;
    let owner = &scene.owner;
    let phone = Device::new("phone");
    let change = StatementChange::Add(Box::new(phone.bundle.clone()));
    let text = owner
        .signed(&change, &phone, Some(&phone), &now())
        .to_text();
    // Its credentials are cached for a moment.
    scene.alice.client.get(&owner.path()).await.expect(200);
    scene
        .cluster
        .administration
        .disable_tenant(&owner.tenant)
        .await
        .unwrap();
    let answer = scene.post(&text).await;
    assert!([401, 404].contains(&answer.status), "{answer:?}");
    assert_eq!(
        scene.number("select count(*) from device_statements").await,
        0
    );
}
