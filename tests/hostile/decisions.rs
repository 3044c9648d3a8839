//! Decisions that are altered on their way back, member by member and as a whole.

use serde_json::{Value, json};

use super::meddler::{Content, Lie};
use super::scene::{Case, HostileScene, SIGNATURE, UNKNOWN};

/// Every member of a signed decision, with another value that it could have, and what an enforcer
/// says to that.
fn members(scene: &HostileScene) -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("requestId", json!("01J2V8V3K6B2Z9X6G1V7Y2QK8H"), SIGNATURE),
        ("artifactHash", json!("0".repeat(64)), SIGNATURE),
        (
            "artifactHashAlg",
            json!("SHA-512"),
            "/artifactHashAlg should be",
        ),
        ("repoRef", json!("repo:acme/other"), SIGNATURE),
        ("decision", json!("reject"), SIGNATURE),
        ("scope", json!("session"), SIGNATURE),
        ("expiresAt", json!("2099-01-01T00:00:00Z"), SIGNATURE),
        ("nonce", json!("AAAAAAAAAAAAAAAAAAAAAA"), SIGNATURE),
        ("sigAlg", json!("none"), "/sigAlg should be"),
        ("signerKeyId", json!(scene.mallory.id()), UNKNOWN),
        ("signature", json!("A".repeat(86)), SIGNATURE),
        ("policyHints", json!({ "reason": "all of it" }), SIGNATURE),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_member_of_a_decision_can_be_altered() {
    let scene = HostileScene::start().await;
    let mut cases = Vec::new();
    for (name, other, cause) in members(&scene) {
        let set = |value: Value| Lie::default().body(move |body| body[name] = value.clone());
        let shape = format!("/{name} should be");
        cases.push(Case::approved(
            format!("{name}: another"),
            set(other),
            cause,
        ));
        let null = set(Value::Null);
        cases.push(Case::approved(format!("{name}: null"), null, &shape));
        let number = set(json!(7));
        cases.push(Case::approved(format!("{name}: a number"), number, &shape));
        let removed = Lie::default().body(move |body| {
            body.as_object_mut().unwrap().remove(name).unwrap();
        });
        let cause = match name {
            "sigAlg" => "in the compact form",
            "policyHints" => SIGNATURE,
            _ => &shape,
        };
        cases.push(Case::approved(format!("{name}: none"), removed, cause));
    }
    let more = Lie::default().body(|body| body["until"] = "for ever".into());
    cases.push(Case::approved(
        "one more member",
        more,
        "/until should be: no such member",
    ));
    let flipped = Lie::default().body(|body| body["decision"] = "approve".into());
    cases.push(Case::rejected("a rejection flipped", flipped, SIGNATURE));
    let hints = Lie::default().body(|body| {
        let data = &mut body["policyHints"]["sealed"]["data"];
        *data = format!("{}A", &data.as_str().unwrap()[1..]).into();
    });
    cases.push(Case::approved("the reason altered", hints, SIGNATURE));
    scene.all_denied(cases).await;

    let flipped = Lie::default().body(|body| body["decision"] = "approve".into());
    let case = Case::rejected("a rejection flipped", flipped, SIGNATURE);
    scene.program_denied(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_one_strict_envelope_around_a_decision_is_no_decision() {
    let scene = HostileScene::start().await;
    let whole = |change: fn(&str) -> String| Lie::default().decision(move |it| it.rewrite(change));
    let twice =
        whole(|text| text.replacen("\"decision\":", "\"decision\":\"approve\",\"decision\":", 1));
    let outer = whole(|text| text.replacen('{', "{\"body\":{\"decision\":\"approve\"},", 1));
    let cases = vec![
        Case::rejected("two verdicts", twice, "two members of the same name"),
        Case::rejected("two bodies", outer, "two members of the same name"),
        Case::approved(
            "something after it",
            whole(|text| format!("{text} {{}}")),
            "must not be followed by anything",
        ),
        Case::approved(
            "two of them",
            whole(|text| format!("{text}{text}")),
            "must not be followed by anything",
        ),
        Case::approved(
            "in a list",
            whole(|text| format!("[{text}]")),
            "the body should be an object",
        ),
        Case::approved(
            "cut off",
            whole(|text| text[..text.len() / 2].to_owned()),
            "ends before its value is complete",
        ),
        Case::approved("nothing", whole(|_| String::new()), "ends before its value"),
        Case::approved("no JSON", whole(|_| "approve".to_owned()), "is not JSON"),
        Case::approved(
            "no text",
            Lie::default().decision(|it| it.body = Content::Whole(vec![b'"', 0xff, b'"'])),
            "not valid UTF-8",
        ),
        Case::approved(
            "too deep",
            whole(|_| "[".repeat(100_000)),
            "must not be nested deeper",
        ),
        Case::approved(
            "another kind of message",
            Lie::default().decision(|it| it.edit(|it| it["msgType"] = "exchange.status".into())),
            "not what was expected: a decision",
        ),
        Case::approved(
            "no kind",
            Lie::default().decision(|it| it.edit(|it| it["msgType"] = Value::Null)),
            "/msgType should be",
        ),
        Case::approved(
            "the body as text",
            Lie::default().decision(|it| it.edit(|it| it["body"] = it["body"].to_string().into())),
            "/body should be: an object",
        ),
        Case::approved(
            "no body",
            Lie::default().decision(|it| {
                it.edit(|it| {
                    it.as_object_mut().unwrap().remove("body").unwrap();
                });
            }),
            "/body should be: an object",
        ),
        Case::approved(
            "an empty body",
            Lie::default().body(|body| *body = json!({})),
            "in the compact form",
        ),
        Case::approved(
            "the body inside another",
            Lie::default().body(|body| *body = json!({ "decision": body.clone() })),
            "in the compact form",
        ),
    ];
    scene.all_denied(cases).await;
    let case = Case::rejected(
        "two verdicts",
        whole(|text| text.replacen("\"decision\":", "\"decision\":\"approve\",\"decision\":", 1)),
        "two members of the same name",
    );
    scene.program_denied(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_envelope_says_beside_the_decision_changes_nothing() {
    let scene = HostileScene::start().await;
    // The rejection inside stands against any claim of the envelope.
    for (name, value) in [
        ("requestId", json!("01J2V8V3K6B2Z9X6G1V7Y2QK8H")),
        ("trace", json!({ "verified": true, "decision": "approve" })),
        ("decision", json!("approve")),
        ("sender", json!({ "approverId": "alice" })),
        ("expiresAt", json!("2099-01-01T00:00:00Z")),
    ] {
        let lie = Lie::default().decision(move |it| it.edit(|it| it[name] = value.clone()));
        let case = Case::rejected(name, lie, "alice rejected it");
        scene.all_denied([case]).await;
    }
}
