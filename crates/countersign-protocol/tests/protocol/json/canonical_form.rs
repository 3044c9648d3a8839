//! Holds the canonical form and the hash to what others published:
//! the vectors of the protocol drafts, and the examples RFC 8785 itself prints.

use countersign_protocol::canonical::{Sha256Hex, canonical, canonical_without};
use countersign_protocol::json::{JsonValue, parse};
use serde_json::Value as Json;

use super::canon;

/// A published vector file.
fn vectors(name: &str) -> String {
    let path = format!("{}/../../tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn published_hashes_come_out_as_published() {
    let file = vectors("hashes.json");
    let file = parse(file.as_bytes()).unwrap();
    let JsonValue::Array(rows) = &file.as_object().unwrap().get("hashes").unwrap().value else {
        unreachable!("hashes is an array");
    };
    assert_eq!(rows.len(), 3);
    for row in rows {
        let row = row.as_object().unwrap();
        let text = |name| row.get(name).unwrap().as_str().unwrap();
        let (object, field) = (row.get("object").unwrap(), text("hashField"));
        assert_eq!(canonical(object), text("canonical"));
        let hash = Sha256Hex::of(text("canonical").as_bytes());
        assert_eq!(Sha256Hex::parse(text("sha256")), Some(hash));

        // As it travels the object carries its own hash, which the hash does not cover.
        let sent = object
            .raw
            .replacen('{', &format!("{{\"{field}\":\"{hash}\","), 1);
        let sent = parse(sent.as_bytes()).unwrap();
        let covered = canonical_without(sent.as_object().unwrap(), field);
        assert_eq!(covered, text("canonical"));
    }
}

#[test]
fn published_signed_messages_are_canonical_already() {
    let file: Json = serde_json::from_str(&vectors("ed25519.json")).unwrap();
    for row in file["rows"].as_array().unwrap() {
        let message = row["message"].as_str().unwrap();
        assert_eq!(canon(message), message);
    }
}

#[test]
fn numbers_print_as_rfc_8785_appendix_b_prints_them() {
    for (bits, text) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        // With an exponent even the large ones are no integer literals.
        assert_eq!(canon(&format!("{:e}", f64::from_bits(bits))), text);
    }
}

#[test]
fn the_sample_of_rfc_8785_section_3_2_2_comes_out_as_printed() {
    let sample = r#"{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"#;
    let printed = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    assert_eq!(canon(sample), printed);
}

#[test]
fn members_are_sorted_as_in_rfc_8785_section_3_2_3() {
    let sample = r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"}"#;
    let sorted = concat!(
        r#"{"\r":"Carriage Return","1":"One",""#,
        "\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",",
        "\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
    );
    assert_eq!(canon(sample), sorted);
}

#[test]
fn strings_are_escaped_only_where_json_demands_it() {
    let source = r#""\u0001\b\t\n\u000b\f\r\u001F\"\\\/\u007f\u2028é""#;
    let text = "\"\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\u{7f}\u{2028}é\"";
    assert_eq!(canon(source), text);
}

#[test]
fn only_the_outermost_member_is_left_out_and_null_members_stay() {
    let node = parse(br#"{"n":null,"h":1,"a":{"h":2}}"#).unwrap();
    let object = node.as_object().unwrap();
    assert_eq!(canonical_without(object, "h"), r#"{"a":{"h":2},"n":null}"#);
    assert_eq!(canonical_without(object, "absent"), canonical(&node));
}

#[test]
fn a_hash_has_exactly_one_spelling() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let hash = Sha256Hex::of(b"");
    assert_eq!(hash.to_string(), empty);
    assert_eq!(format!("{hash:?}"), format!("Sha256Hex({empty})"));
    assert_eq!(hash.as_bytes()[..2], [0xe3, 0xb0]);
    assert_eq!(Sha256Hex::parse(empty), Some(hash));
    let [longer, longest] = ["0", "00"].map(|more| format!("{empty}{more}"));
    let foreign = empty.replace('e', "g");
    for other in [
        "",
        &empty[1..],
        &empty[2..],
        &longer,
        &longest,
        &empty.to_uppercase(),
        &foreign,
        &"é".repeat(32),
    ] {
        assert_eq!(Sha256Hex::parse(other), None);
    }
}
