//! Holds the strict parser to its promise: every value keeps its source,
//! and each rule has its refusal, at its byte, with the pointer of the value being read.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use countersign_protocol::canonical::canonical;
use countersign_protocol::json::{JsonProblem, MAX_DEPTH, MAX_VALUES, parse};

mod canonical_form;
mod properties;

/// The canonical text of a document that must be accepted.
fn canon(text: &str) -> String {
    canonical(&parse(text.as_bytes()).unwrap())
}

/// Asserts that a text is refused for this reason, at this byte, while reading this value.
#[track_caller]
fn refused(text: impl AsRef<[u8]>, reason: JsonProblem, offset: usize, pointer: &str) {
    let error = parse(text.as_ref()).unwrap_err();
    let found = (error.reason, error.offset, error.pointer.as_str());
    assert_eq!(found, (reason, offset, pointer), "{:?}", text.as_ref());
}

#[test]
fn every_value_keeps_its_source() {
    let node =
        parse(b" \t\r\n{ \"\\u0061\" : 1.50 , \"b\":[ true, \"x\\n\" ],\"o\":{ } }\n").unwrap();
    assert_eq!(
        node.raw,
        "{ \"\\u0061\" : 1.50 , \"b\":[ true, \"x\\n\" ],\"o\":{ } }"
    );
    let object = node.as_object().unwrap();
    let spans: Vec<_> = object
        .iter()
        .map(|m| (&*m.name, m.raw_name, m.node.raw))
        .collect();
    let list = r#"[ true, "x\n" ]"#;
    let expected = [
        ("a", r#""\u0061""#, "1.50"),
        ("b", "\"b\"", list),
        ("o", "\"o\"", "{ }"),
    ];
    assert_eq!(spans, expected);
    assert_eq!(
        (object.len(), object.is_empty(), node.kind()),
        (3, false, "object")
    );
    assert_eq!(object.get("a").unwrap().as_str(), None);
    assert!(object.get("b").unwrap().as_object().is_none() && object.get("c").is_none());
    let kinds = ["null", "false", "-0", "\"\"", "[]", "{}"]
        .map(|text| parse(text.as_bytes()).unwrap().kind());
    assert_eq!(
        kinds,
        ["null", "boolean", "number", "string", "array", "object"]
    );
}

#[test]
fn broken_grammar_is_refused_where_it_breaks() {
    use JsonProblem::{NotUtf8, Syntax, TrailingBytes, UnexpectedEnd};
    refused(b"\"a\xff\"", NotUtf8, 2, "");
    refused("\u{feff}1", Syntax, 0, "");
    refused("\u{a0}1", Syntax, 0, "");
    refused("\u{c}1", Syntax, 0, "");
    for (text, offset) in [
        ("01", 1),
        ("-01", 2),
        ("+1", 0),
        (".5", 0),
        ("1.e5", 2),
        ("1e+x", 3),
        ("-a", 1),
    ] {
        refused(text, Syntax, offset, "");
    }
    for (text, offset) in [
        ("nul!", 3),
        ("True", 0),
        ("NaN", 0),
        ("'a'", 0),
        ("/**/1", 0),
        ("]", 0),
    ] {
        refused(text, Syntax, offset, "");
    }
    for (text, offset) in [
        (r#""\x""#, 2),
        (r#""\u00g0""#, 5),
        (r#""\U0041""#, 2),
        ("\"\t\"", 1),
        ("\"a\0\"", 2),
    ] {
        refused(text, Syntax, offset, "");
    }
    for text in [
        "", " ", "-", "1.", "1e", "tru", "\"", "\"\\", "\"\\u00", "[", "[1", "{", "{\"a\"",
    ] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert_eq!(
            (error.reason, error.offset),
            (UnexpectedEnd, text.len()),
            "{text}"
        );
    }
    refused("[1,]", Syntax, 3, "/1");
    refused("[1 2]", Syntax, 3, "");
    refused(r#"{"a":1,}"#, Syntax, 7, "");
    refused(r#"{"a" 1}"#, Syntax, 5, "/a");
    refused("{a:1}", Syntax, 1, "");
    refused(r#"{"a":[0,{"b":x}]}"#, Syntax, 13, "/a/1/b");
    refused(r#"{"m~n/o":tru}"#, Syntax, 12, "/m~0n~1o");
    refused("1 2", TrailingBytes, 2, "");
    refused("{}\0", TrailingBytes, 2, "");
}

#[test]
fn strings_of_every_length_end_where_they_end() {
    for length in 0..100 {
        let plain = "\u{e9}~".repeat(length) + &" ".repeat(length % 3);
        let read = |text: &str| parse(text.as_bytes()).map(|node| node.as_str().map(str::to_owned));
        assert_eq!(read(&format!("\"{plain}\"")).unwrap(), Some(plain.clone()));
        let escaped = read(&format!("\"{plain}\\n{plain}\"")).unwrap();
        assert_eq!(escaped, Some(format!("{plain}\n{plain}")));
        for end in ["\n", "\u{1f}"] {
            let text = format!("\"{plain}{end}{plain}\"");
            refused(&text, JsonProblem::Syntax, plain.len() + 1, "");
        }
    }
}

#[test]
fn a_repeated_member_name_is_refused_however_it_is_spelled() {
    refused(
        r#"{"a":1,"b":2,"\u0061":3}"#,
        JsonProblem::DuplicateMember,
        13,
        "/a",
    );
    refused(
        r#"[{"x":{"":1,"":2}}]"#,
        JsonProblem::DuplicateMember,
        12,
        "/0/x/",
    );
    // Decomposed and precomposed letters are different names: nothing is normalized.
    assert!(parse("{\"é\":1,\"e\u{301}\":2,\"E\":3,\"e\":4}".as_bytes()).is_ok());
    for count in [15, 16, 17, 50_000] {
        let members = (0..count)
            .map(|n| format!("\"k{n}\":0,"))
            .collect::<Vec<_>>()
            .concat();
        assert!(parse(format!("{{{members}\"last\":0}}").as_bytes()).is_ok());
        let offset = members.len() + 1;
        for name in ["k0", "k7", &format!("k{}", count - 1)] {
            let text = format!("{{{members}\"{name}\":0}}");
            refused(
                text,
                JsonProblem::DuplicateMember,
                offset,
                &format!("/{name}"),
            );
        }
    }
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    for text in [
        r#""\ud800""#,
        r#""\uDC00""#,
        r#""\ud800\ud800""#,
        r#""\ud800\u0041""#,
        r#""\ud800\ue000""#,
        r#""\ude00\ud83d""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
    ] {
        refused(text, JsonProblem::LoneSurrogate, 1, "");
    }
    refused(r#"{"a":["\udfff"]}"#, JsonProblem::LoneSurrogate, 7, "/a/0");
    refused(r#"{"a":{"\udbff":1}}"#, JsonProblem::LoneSurrogate, 7, "/a");
    refused(b"\"\xed\xa0\x80\"", JsonProblem::NotUtf8, 1, "");
    assert_eq!(
        canon(r#""\uD83D\uDE00\ud800\udc00\udbff\udfff""#),
        "\"😀\u{10000}\u{10ffff}\""
    );
}

#[test]
fn a_nul_character_is_refused_in_values_and_names() {
    refused(r#"{"a":"b\u0000"}"#, JsonProblem::NulCharacter, 7, "/a");
    refused(r#"{"a":{"\u0000":1}}"#, JsonProblem::NulCharacter, 7, "/a");
    assert_eq!(canon(r#""\\u0000""#), r#""\\u0000""#);
}

#[test]
fn nesting_ends_at_its_limit() {
    let nested = |open: &str, close: &str, depth| open.repeat(depth) + "1" + &close.repeat(depth);
    assert!(parse(nested("[", "]", MAX_DEPTH).as_bytes()).is_ok());
    assert!(parse(nested("{\"a\":", "}", MAX_DEPTH).as_bytes()).is_ok());
    refused(
        nested("[", "]", MAX_DEPTH + 1),
        JsonProblem::TooDeep,
        64,
        &"/0".repeat(64),
    );
    refused(
        nested("{\"a\":", "}", MAX_DEPTH + 1),
        JsonProblem::TooDeep,
        320,
        &"/a".repeat(64),
    );
    refused(
        "[".repeat(2_000_000),
        JsonProblem::TooDeep,
        64,
        &"/0".repeat(64),
    );
    // The limit is on depth, not on how many containers there are.
    assert!(parse(format!("[{}[]]", "[],{},".repeat(100)).as_bytes()).is_ok());
}

#[test]
fn values_end_at_their_limit() {
    let items = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
    // The array is a value too.
    assert!(parse(items(MAX_VALUES - 1).as_bytes()).is_ok());
    let last = format!("/{}", MAX_VALUES - 1);
    let offset = 2 * MAX_VALUES - 1;
    refused(items(MAX_VALUES), JsonProblem::TooManyValues, offset, &last);
    let members: Vec<_> = (0..MAX_VALUES).map(|n| format!("\"{n}\":{{}}")).collect();
    let error = parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap_err();
    assert_eq!(error.reason, JsonProblem::TooManyValues);
}

#[test]
fn numbers_that_parties_could_read_differently_are_refused() {
    for text in ["9007199254740991", "-9007199254740991", "0", "-0", "1e-400"] {
        assert!(parse(text.as_bytes()).is_ok(), "{text}");
    }
    for text in [
        "9007199254740992",
        "-9007199254740992",
        "18446744073709551616",
        &"9".repeat(400),
    ] {
        refused(text, JsonProblem::IntegerRange, 0, "");
    }
    refused(
        r#"{"n":[1,9007199254740993]}"#,
        JsonProblem::IntegerRange,
        8,
        "/n/1",
    );
    for text in [
        "1e309",
        "-1e309",
        "1.7976931348623159e308",
        "1e99999999999999999999",
    ] {
        refused(text, JsonProblem::NumberOverflow, 0, "");
    }
    refused("[2E+400]", JsonProblem::NumberOverflow, 1, "/0");
    // The limit is on integer literals; so a large float has a canonical form that is no valid
    // input.
    assert_eq!(canon("1e20"), "100000000000000000000");
    assert_eq!(["-0", "-0.0", "-0e9"].map(canon), ["0"; 3]);
}

#[test]
fn a_refusal_tells_what_to_change_and_repeats_no_content() {
    let error = parse(br#"{"secret":{"a":1,"a":2}}"#).unwrap_err();
    let sentence = "an object must not have two members of the same name (byte 17)";
    assert_eq!(
        (error.to_string().as_str(), error.pointer.as_str()),
        (sentence, "/secret/a")
    );
    let deep = parse("[".repeat(65).as_bytes()).unwrap_err().to_string();
    assert!(deep.contains(&format!("deeper than {MAX_DEPTH} levels")));
}
