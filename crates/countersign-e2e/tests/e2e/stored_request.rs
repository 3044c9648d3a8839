//! The proof in the record of a request that outlives its process. `tests/vectors/stored_request.json`
//! is for the libraries; after a deliberate change, run this once with `WRITE_VECTORS=1`.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_e2e::{EnforcerKeys, OutcomeKey, PlainArtifact};
use serde_json::{Map, Value, json};

use super::people::{ARTIFACT, known};

const MEMBERS: [&str; 4] = ["tenantId", "enforcerId", "outcomeKey", "artifact"];

fn keys(name: &'static str) -> EnforcerKeys {
    EnforcerKeys::generate(&mut known(name)).unwrap()
}

fn proven(record: &Value) -> String {
    MEMBERS
        .map(|name| record[name].as_str().unwrap().to_owned())
        .join("\n")
}

fn is_proven(keys: &EnforcerKeys, record: &Value) -> bool {
    keys.proves_record(&proven(record), record["proof"].as_str().unwrap())
}

fn record(keys: &EnforcerKeys) -> Value {
    let outcome_key = OutcomeKey::generate(&mut known("outcome")).unwrap();
    let mut members: Map<String, Value> = serde_json::from_str(ARTIFACT).unwrap();
    outcome_key.name_in(&mut members);
    let text = Value::Object(members).to_string();
    let artifact = PlainArtifact::complete(&text, &mut known("artifact")).unwrap();
    let mut record = json!({
        "v": 1,
        "tenantId": "acme",
        "enforcerId": "build-bot",
        "outcomeKey": outcome_key.to_text().as_str(),
        "artifact": artifact.text(),
    });
    record["proof"] = keys.prove_record(&proven(&record)).into();
    record
}

#[test]
fn a_record_is_opened_only_by_the_enforcer_that_stored_it() {
    let own = keys("enforcer");
    let good = record(&own);
    assert!(is_proven(&own, &good));
    let with = |name: &str, value: &str| {
        let mut record = good.clone();
        record[name] = value.into();
        record
    };
    let anothers = record(&keys("another enforcer"));
    let mut relabelled = good.clone();
    relabelled["proof"] = anothers["proof"].clone();
    let artifact = good["artifact"].as_str().unwrap();
    let other_key = OutcomeKey::generate(&mut known("another")).unwrap();
    let proof = good["proof"].as_str().unwrap();
    let refused = [
        ("of another enforcer", relabelled),
        (
            "an edited artifact",
            with("artifact", &artifact.replacen('a', "b", 1)),
        ),
        (
            "another outcome's key",
            with("outcomeKey", &other_key.to_text()),
        ),
        ("another id", with("enforcerId", "other-bot")),
        ("another tenant", with("tenantId", "other")),
        ("no proof", with("proof", "")),
        ("a short proof", with("proof", &proof[..40])),
    ];
    for (name, record) in &refused {
        assert!(!is_proven(&own, record), "{name}");
    }
    let vectors = json!({
        "privateKey": URL_SAFE_NO_PAD.encode(*own.secret()),
        "accepted": good.to_string(),
        "refused": refused.map(|(name, record)| json!({ "name": name, "record": record.to_string() })),
    });
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/stored_request.json");
    let text = format!("{vectors:#}\n");
    if std::env::var_os("WRITE_VECTORS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), text);
}
