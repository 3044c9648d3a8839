//! Holds what clients receive over channels, in every test, to the message kinds and close codes of
//! asyncapi.yaml.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("../../src/http/api/openapi/asyncapi.yaml")).expect("YAML")
});
static FRAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| names(&DOCUMENT, "webSocket", "send"));
static EVENTS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let approver = names(&DOCUMENT, "approverStream", "send");
    &approver | &names(&DOCUMENT, "enforcerStream", "send")
});

/// The messages that the gateway sends or receives over a channel, by their id in the document.
/// Answers are sent.
pub fn messages(document: &Value, channel: &str, action: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let channel = format!("#/channels/{channel}");
    for operation in document["operations"].as_object().unwrap().values() {
        let answers = (action == "send").then_some(&operation["reply"]);
        let own = (operation["action"] == action).then_some(operation);
        for part in answers.into_iter().chain(own) {
            if part["channel"]["$ref"] != channel.as_str() {
                continue;
            }
            let all = &document.pointer(&channel[1..]).unwrap()["messages"];
            let listed = part["messages"].as_array().into_iter().flatten();
            let listed = listed.map(|one| one["$ref"].as_str().unwrap());
            found.extend(listed.map(|path| path.rsplit('/').next().unwrap().to_owned()));
            if part["messages"].is_null() {
                found.extend(all.as_object().unwrap().keys().cloned());
            }
        }
    }
    found
}

/// The same by their `msgType`.
fn names(document: &Value, channel: &str, action: &str) -> BTreeSet<String> {
    let all = &document["components"]["messages"];
    let ids = messages(document, channel, action).into_iter();
    ids.map(|id| all[id]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
pub fn frame(message: &Value) {
    let kind = message["msgType"].as_str().expect("a msgType");
    assert!(FRAMES.contains(kind), "asyncapi.yaml has no frame {kind}");
}

#[track_caller]
pub fn event(kind: &str) {
    assert!(EVENTS.contains(kind), "asyncapi.yaml has no event {kind}");
}

/// A close code; 0 if there was none.
#[track_caller]
pub fn close(code: u16) {
    let codes = &DOCUMENT["channels"]["webSocket"]["x-close-codes"];
    assert!(
        code == 0 || codes[code.to_string()].is_object(),
        "asyncapi.yaml has no close code {code}"
    );
}
