//! Runs the checks of the fuzzer over the corpus that it left behind.

use countersign::{e2e, protocol as subject};

#[path = "fuzz/encryption.rs"]
mod encryption;
#[path = "fuzz/targets.rs"]
mod targets;

fn run(target: &str, check: fn(&[u8])) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/corpus/");
    let files = std::fs::read_dir(format!("{directory}{target}")).expect("a corpus");
    let mut count = 0;
    for file in files {
        let path = file.expect("a file").path();
        let data = std::fs::read(&path).expect("bytes");
        let outcome = std::panic::catch_unwind(|| check(&data));
        assert!(outcome.is_ok(), "{}", path.display());
        count += 1;
    }
    assert!(count > 0, "nothing in {target}");
}

#[test]
fn strict_json() {
    run("strict_json", targets::strict_json);
}

#[test]
fn frames() {
    run("frames", targets::frames);
}

#[test]
fn cursor() {
    run("cursor", targets::cursor);
}

#[test]
fn pairing_code() {
    run("pairing_code", targets::pairing_code);
}

#[test]
fn credential() {
    run("credential", targets::credential);
}

#[test]
fn bundle() {
    run("bundle", encryption::bundle);
}

#[test]
fn ciphertext() {
    run("ciphertext", encryption::ciphertext);
}
