//! Edits of files that belong to others: what was put in comes out again, and everything else stays
//! as it was.

use countersign::agent::edit::json::{JsonDocument, NewValue, PathStep, RemovalRest};
use proptest::prelude::*;
use serde_json::{Value, json};

fn key(text: &str) -> PathStep {
    PathStep::Key(text.to_owned())
}

fn fresh(value: &Value) -> NewValue {
    NewValue::of(value).unwrap()
}

fn appended(text: &str, path: &[&str], value: &Value) -> String {
    let mut document = JsonDocument::parse(text).unwrap();
    document.append(path, &fresh(value)).unwrap();
    document.text()
}

/// Takes out the last element of the list at `path`; none if the document was created for it.
fn without_last(text: &str, path: &[&str]) -> Option<String> {
    let mut document = JsonDocument::parse(text).unwrap();
    let value = document.value().unwrap();
    let list = path.iter().fold(&value, |value, key| &value[*key]);
    let mut steps: Vec<_> = path.iter().map(|text| key(text)).collect();
    steps.push(PathStep::Index(list.as_array().unwrap().len() - 1));
    (document.remove(&steps).unwrap() == RemovalRest::Something).then(|| document.text())
}

#[test]
fn an_element_is_added_in_the_style_of_the_file() {
    let ours = json!({"run": "x"});
    let path = ["hooks", "Pre"];
    for (before, after) in [
        (
            "",
            "{\n  \"hooks\": {\n    \"Pre\": [\n      {\n        \"run\": \"x\"\n      }\n    ]\n  }\n}\n",
        ),
        (
            "{\n\t\"a\": 1 // one\n}\n",
            "{\n\t\"a\": 1, // one\n\t\"hooks\": {\n\t\t\"Pre\": [\n\t\t\t{\n\t\t\t\t\"run\": \"x\"\n\t\t\t}\n\t\t]\n\t}\n}\n",
        ),
        (r#"{"a":1}"#, r#"{"a":1, "hooks": {"Pre": [{"run":"x"}]}}"#),
        (
            "{\n  \"hooks\": {\n    \"Pre\": [\n      1, // first\n    ],\n  },\n}",
            "{\n  \"hooks\": {\n    \"Pre\": [\n      1, // first\n      {\n        \"run\": \"x\"\n      },\n    ],\n  },\n}",
        ),
        (
            "{\r\n  \"hooks\": {}\r\n}\r\n",
            "{\r\n  \"hooks\": {\r\n    \"Pre\": [\r\n      {\r\n        \"run\": \"x\"\r\n      }\r\n    ]}\r\n}\r\n",
        ),
    ] {
        assert_eq!(appended(before, &path, &ours), after, "{before}");
        let restored = without_last(after, &path);
        assert_eq!(restored.unwrap_or_default(), before);
    }
}

#[test]
fn a_value_is_replaced_in_its_place() {
    let text = "{\n    \"a\": [\n        {\"b\": 1}, // why\n        {\n            \"b\": 2\n        }\n    ]\n}\n";
    let mut document = JsonDocument::parse(text).unwrap();
    let new = json!({"b": 3});
    document
        .replace(&[key("a"), PathStep::Index(0)], &fresh(&new))
        .unwrap();
    document
        .replace(&[key("a"), PathStep::Index(1)], &fresh(&new))
        .unwrap();
    let expected = "{\n    \"a\": [\n        {\"b\":3}, // why\n        {\n            \"b\": 3\n        }\n    ]\n}\n";
    assert_eq!(document.text(), expected);
}

#[test]
fn what_cannot_be_parsed_is_refused_with_its_line() {
    for (text, line, word) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 2, "comma"),
        ("{\n  \"a\": ", 2, ""),
        ("{\n\"a\": 1,\n\"a\": 2}", 3, "twice"),
        ("[]", 1, "object"),
        ("// only this\n", 1, "object"),
        ("{'a': 1}", 1, ""),
        ("{a: 1}", 1, ""),
        ("{} {}", 1, ""),
        ("{\n<<<<<<< HEAD\n}", 2, ""),
    ] {
        let error = JsonDocument::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.problem.contains(word), "{text}: {error}");
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    JsonDocument::parse(&deep).unwrap_err();
}

#[test]
fn a_container_of_another_kind_is_refused() {
    for text in [
        r#"{"hooks": []}"#,
        r#"{"hooks": {"Pre": {}}}"#,
        r#"{"hooks": 1}"#,
        r#"{"hooks": null}"#,
    ] {
        let mut document = JsonDocument::parse(text).unwrap();
        let error = document
            .append(&["hooks", "Pre"], &fresh(&json!(1)))
            .unwrap_err();
        assert!(error.problem.contains("expected a"), "{error}");
        assert_eq!(document.text(), text);
    }
}

#[test]
fn comments_around_what_is_removed_stay() {
    for (text, after) in [
        (
            "{\"hooks\": {\"Pre\": [ // why\n  1, \"b\"]}}",
            "{\"hooks\": {\"Pre\": [ // why\n   \"b\"]}}",
        ),
        (
            "{\"hooks\": {\"Pre\": [ // why\n  1 ]}}",
            "{\"hooks\": {\"Pre\": [ // why\n   ]}}",
        ),
        (
            "{\"hooks\": {\"Pre\": [0, // why\n  1]}}",
            "{\"hooks\": {\"Pre\": [0 // why\n  ]}}",
        ),
        (
            "{\"hooks\": {\"Pre\": [/* a */ 1 /* b */, 2]}}",
            "{\"hooks\": {\"Pre\": [/* a */ 2]}}",
        ),
    ] {
        let mut document = JsonDocument::parse(text).unwrap();
        let value = document.value().unwrap();
        let index = value["hooks"]["Pre"]
            .as_array()
            .unwrap()
            .iter()
            .position(|value| value == 1);
        let path = [key("hooks"), key("Pre"), PathStep::Index(index.unwrap())];
        document.remove(&path).unwrap();
        assert_eq!(document.text(), after);
    }
}

/// Space and comments, as people have them.
fn trivia() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec![
            "",
            " ",
            "  ",
            "\n",
            "\n  ",
            "\n    ",
            "\n\t",
            "\r\n  ",
            " // it's, \"so\" ]}\n",
            "/* , */",
            "/* a\n b */\n  ",
        ]),
        0..3,
    )
    .prop_map(|parts| parts.concat())
}

fn separated(parts: Vec<String>, gaps: &[String], trailing: bool) -> String {
    let count = parts.len();
    let mut text = String::new();
    for (index, part) in parts.into_iter().enumerate() {
        let gap = |n: usize| gaps.get((index * 2 + n) % gaps.len().max(1)).cloned();
        text += &gap(0).unwrap_or_default();
        text += &part;
        text += &gap(1).unwrap_or_default();
        if index + 1 < count || trailing {
            text.push(',');
        }
    }
    text
}

/// Any JSON text with comments, in any layout.
fn any_text() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "null",
        "true",
        "\"text, ]\"",
        "-1.5e3",
        "\"\\u00e9\"",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(3, 16, 4, |inner| {
        let gaps = prop::collection::vec(trivia(), 1..9);
        let lists = (
            prop::collection::vec(inner.clone(), 0..4),
            gaps,
            any::<bool>(),
            trivia(),
        );
        let lists = lists.prop_map(|(parts, gaps, trailing, end)| {
            format!("[{}{end}]", separated(parts, &gaps, trailing))
        });
        prop_oneof![lists, object(inner.boxed())]
    })
}

fn object(inner: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let gaps = prop::collection::vec(trivia(), 1..9);
    let parts = prop::collection::btree_map("[a-z]{1,4}", inner, 0..4);
    (parts, gaps, any::<bool>(), trivia(), trivia()).prop_map(
        |(parts, gaps, trailing, colon, end)| {
            let parts = parts
                .into_iter()
                .map(|(name, value)| format!("\"{name}\"{colon}:{colon}{value}"));
            format!("{{{}{end}}}", separated(parts.collect(), &gaps, trailing))
        },
    )
}

/// A file with or without hooks of others, in any layout.
fn any_settings() -> impl Strategy<Value = String> {
    let gaps = || prop::collection::vec(trivia(), 1..9);
    let list = (
        prop::collection::vec(any_text(), 0..4),
        gaps(),
        any::<bool>(),
        trivia(),
    );
    let list = list.prop_map(|(parts, gaps, trailing, end)| {
        format!("[{}{end}]", separated(parts, &gaps, trailing))
    });
    let hooks = (
        prop::option::of(list),
        prop::option::of(any_text()),
        gaps(),
        any::<bool>(),
        trivia(),
    );
    let hooks = hooks.prop_map(|(pre, other, gaps, trailing, end)| {
        let other = other.map(|text| format!("\"Stop\": {text}"));
        let pre = pre.map(|text| format!("\"Pre\":{text}"));
        let parts: Vec<_> = other.into_iter().chain(pre).collect();
        let trailing = trailing && !parts.is_empty();
        format!("{{{}{end}}}", separated(parts, &gaps, trailing))
    });
    let root = (
        prop::option::of(hooks),
        any_text(),
        any_text(),
        gaps(),
        any::<bool>(),
        trivia(),
        trivia(),
    );
    root.prop_map(|(hooks, first, last, gaps, trailing, before, end)| {
        let mut parts = vec![format!("\"first\": {first}")];
        parts.extend(hooks.map(|text| format!("\"hooks\": {text}")));
        parts.push(format!("\"last\": {last}"));
        format!("{before}{{{}{end}}}\n", separated(parts, &gaps, trailing))
    })
}

/// Containers cannot be empty but for a trailing comma.
fn is_json(text: &str) -> bool {
    JsonDocument::parse(text).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_put_in_comes_out_and_the_file_is_as_before(text in any_settings()) {
        prop_assume!(is_json(&text));
        let before = JsonDocument::parse(&text).unwrap().value().unwrap();
        let ours = json!({"matcher": "*", "hooks": [{"type": "command"}]});
        let (pre, post) = (["hooks", "Pre"], ["hooks", "Post"]);
        let once = appended(&text, &pre, &ours);
        let both = appended(&once, &post, &ours);
        let after = JsonDocument::parse(&both).unwrap().value().unwrap();
        prop_assert_eq!(after["hooks"]["Pre"].as_array().unwrap().last(), Some(&ours));
        prop_assert_eq!(&after["hooks"]["Post"], &json!([ours]));
        prop_assert_eq!(&after["first"], &before["first"]);
        prop_assert_eq!(&after["hooks"]["Stop"], &before["hooks"]["Stop"]);
        // In either order.
        let restored = without_last(&without_last(&both, &post).unwrap(), &pre).unwrap();
        prop_assert_eq!(&restored, &text);
        let restored = without_last(&without_last(&both, &pre).unwrap(), &post).unwrap();
        prop_assert_eq!(&restored, &text);
    }
}
