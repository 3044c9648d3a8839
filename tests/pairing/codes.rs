//! The code as a type: what a person types is what was shown.

use countersign::protocol::pairing::PairingCode;
use proptest::prelude::*;

#[test]
fn what_looks_alike_is_read_alike_and_everything_else_is_no_code() {
    let code = PairingCode::parse("0123-4567").unwrap();
    for same in [
        "01234567",
        "O1234567",
        "oI23-4567",
        "0l-23-45-67-",
        "-0L234567",
    ] {
        assert_eq!(PairingCode::parse(same), Some(code), "{same}");
    }
    let none = [
        "",
        "-",
        "0123-456",
        "0123-45678",
        "0123 4567",
        " 01234567",
        "U1234567",
        "u1234567",
        "0123_4567",
        "０1234567",
        "0123456é",
        "0123\n4567",
        "0123\u{0}4567",
        "ſ1234567",
    ];
    for text in none {
        assert_eq!(PairingCode::parse(text), None, "{text:?}");
    }
    assert_eq!(PairingCode::from_bytes([0; 5]).to_string(), "0000-0000");
    assert_eq!(PairingCode::from_bytes([0xff; 5]).to_string(), "ZZZZ-ZZZZ");
    assert_eq!(
        PairingCode::from_bytes([0, 0, 0, 0, 1]).to_string(),
        "0000-0001"
    );
    let printed = format!("{code:?}");
    assert!(!printed.contains("0123"), "{printed}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn a_code_survives_being_shown_and_typed(bytes: [u8; 5]) {
        let shown = PairingCode::from_bytes(bytes).to_string();
        prop_assert_eq!(shown.len(), 9);
        prop_assert!(!shown.contains(['I', 'L', 'O', 'U']));
        for typed in [shown.clone(), super::typed(&shown), shown.replace('-', "")] {
            prop_assert_eq!(PairingCode::parse(&typed).map(|code| *code.as_bytes()), Some(bytes));
        }
    }

    #[test]
    fn reading_a_code_never_fails_otherwise(text in ".{0,12}") {
        if let Some(code) = PairingCode::parse(&text) {
            prop_assert_eq!(PairingCode::parse(&code.to_string()), Some(code));
        }
    }
}
