//! The sentence that says what a request would do, as the page has it too.

use countersign::client::approver::{agent_reason, headline};
use serde_json::{Value, json};

fn plain(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-/".contains(c));
        if is_plain {
            (*word).to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn says(kind: &str, payload: &Value) -> String {
    headline(kind, payload.as_object().unwrap(), plain)
}

#[test]
fn terminal_and_page_say_the_same() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("vectors/headlines.json")).unwrap();
    assert!(vectors.len() > 40);
    for vector in vectors {
        let kind = vector["type"].as_str().unwrap_or("command.review");
        let said = says(kind, &vector["payload"]);
        assert_eq!(said, vector["says"], "{}", vector["payload"]);
    }
}

#[test]
fn a_sentence_stays_short_and_says_that_there_is_more() {
    let long = "x".repeat(100_000);
    for payload in [
        json!({ "kind": "command", "command": long }),
        json!({ "kind": "plan", "text": long }),
        json!({ "kind": "tool", "tool": long, "input": { "url": long } }),
        json!({ "kind": "tool", "tool": "webfetch", "input": { "url": long } }),
        json!({ "title": long }),
    ] {
        let said = says("plan.review", &payload);
        assert!(said.chars().count() < 300 && said.contains('…'), "{said}");
    }
    let patch = format!(
        "--- a/x\n+++ b/x\n@@ -0,0 +1,99999 @@\n{}",
        "+x\n".repeat(100_000)
    );
    let said = says("patch.review", &json!({ "kind": "patch", "patch": patch }));
    assert_eq!(said, "Change x and maybe more files");
}

#[test]
fn the_reason_of_an_agent_is_found_where_agents_put_it() {
    let reason = |payload: Value| agent_reason(payload.as_object().unwrap()).map(str::to_owned);
    let options = json!({ "description": "List files", "timeout": 5 });
    assert_eq!(
        reason(json!({ "options": options })).as_deref(),
        Some("List files")
    );
    assert_eq!(
        reason(json!({ "description": "Why" })).as_deref(),
        Some("Why")
    );
    for none in [
        json!({}),
        json!({ "description": " " }),
        json!({ "options": [1], "description": 1 }),
    ] {
        assert_eq!(reason(none), None);
    }
}
