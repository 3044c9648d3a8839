//! Texts and values, and the published files of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_protocol::canonical::canonical;
use countersign_protocol::json;
use serde_json::Value;

/// The canonical text of a value.
pub fn canon(value: &Value) -> String {
    canonical(&json::parse(value.to_string().as_bytes()).unwrap())
}

pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap();
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

pub fn unbase(text: &Value) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap()
}

pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Compares computed values with a file in `tests/vectors`, or writes it with `WRITE_VECTORS=1`.
pub fn check_published(file: &str, computed: &Value) {
    let path = format!("{}/../../tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("WRITE_VECTORS").is_some() {
        let text = serde_json::to_string_pretty(computed).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    let published = parsed(&std::fs::read_to_string(path).unwrap());
    for (name, section) in published.as_object().unwrap() {
        assert_eq!(computed[name], *section, "{name}");
    }
    assert_eq!(*computed, published);
}
