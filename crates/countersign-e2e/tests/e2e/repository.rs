//! Where an agent works: a salted hash in plain, and the text within.

use std::path::Path;

use countersign_e2e::{Error, PlainArtifact, REPOSITORY, hide_repository};
use serde_json::{Map, Value, json};

use super::people::{ARTIFACT, known};

fn artifact(repo_ref: &Value, hidden: &Value) -> Result<PlainArtifact, Error> {
    let mut members: Value = serde_json::from_str(ARTIFACT).unwrap();
    members["repoRef"] = repo_ref.clone();
    members["extensions"] = json!({ REPOSITORY: hidden });
    PlainArtifact::complete(&members.to_string(), &mut known("artifact"))
}

#[test]
fn the_text_is_the_one_behind_the_hash() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/repository.json");
    let vectors: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    for row in vectors["repositories"].as_array().unwrap() {
        let (salt, text) = (&row["salt"], &row["text"]);
        let good = artifact(&row["repoRef"], &json!({ "salt": salt, "text": text })).unwrap();
        assert_eq!(good.repository(), text.as_str().unwrap());
        assert_eq!(good.repo_ref(), row["repoRef"].as_str().unwrap());
        let longer = format!("{}x", text.as_str().unwrap());
        for other in [
            json!({ "salt": salt, "text": longer }),
            json!({ "salt": &salt.as_str().unwrap()[1..], "text": text }),
            json!({ "salt": salt, "text": text, "more": 1 }),
            json!({ "salt": salt }),
            json!(text),
            json!(null),
        ] {
            let refused = artifact(&row["repoRef"], &other).unwrap_err();
            assert!(matches!(refused, Error::Member { .. }), "{refused:?}");
        }
        let plain = artifact(text, &json!({ "salt": salt, "text": text }));
        assert!(matches!(plain.unwrap_err(), Error::Member { .. }));
    }
}

#[test]
fn the_same_repository_never_looks_the_same_twice() {
    let mut random = known("repository");
    let mut hide = || {
        let mut members = Map::new();
        members.insert("extensions".into(), json!({ "kept": 1 }));
        hide_repository(&mut members, "laptop:/work", &mut random).unwrap();
        assert_eq!(members["extensions"]["kept"], 1);
        let read = artifact(&members["repoRef"], &members["extensions"][REPOSITORY]);
        assert_eq!(read.unwrap().repository(), "laptop:/work");
        members["repoRef"].clone()
    };
    assert_ne!(hide(), hide());
}
