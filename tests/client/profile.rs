//! Profiles: what is in them is secret, and no change is lost.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use countersign::client::profile::{
    ApproverRecord, EnforcerProfile, GatewayProfile, Profile, ProfileError, ProfileFile, SecretText,
};
use countersign::client::random;
use countersign::e2e::EnforcerKeys;
use countersign::protocol::id::{EnforcerId, TextId as _};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn enforcer(id: &str) -> EnforcerProfile {
    let gateway = GatewayProfile {
        urls: vec!["http://127.0.0.1:1".to_owned()],
        ca: None,
        allow_http: false,
        tenant: "acme".to_owned(),
        api_key: SecretText::new("csk_hush"),
    };
    let keys = EnforcerKeys::generate(&mut random).unwrap();
    EnforcerProfile::new(&EnforcerId::parse(id).unwrap(), &keys, gateway)
}

fn put(file: &ProfileFile, id: &str) {
    let change = |profile: &mut Profile| {
        profile.enforcer = Some(enforcer(id));
        Ok::<_, ProfileError>(())
    };
    file.update(change).unwrap();
}

fn profile_in(directory: &Path) -> ProfileFile {
    ProfileFile::at(directory.join("countersign/work.toml"))
}

#[test]
fn only_the_owner_reads_a_profile_and_what_lies_around_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = profile_in(directory.path());
    put(&file, "bot");
    assert_eq!(mode(file.path()), 0o600);
    assert_eq!(mode(file.path().parent().unwrap()), 0o700);
    assert_eq!(mode(&file.path().with_extension("lock")), 0o600);
    assert_eq!(file.load().unwrap().enforcer.unwrap().id, "bot");
}

#[test]
fn a_profile_that_others_can_read_is_refused_and_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = profile_in(directory.path());
    put(&file, "bot");
    for exposed in [0o640, 0o604, 0o620, 0o602, 0o610] {
        let permissions = std::fs::Permissions::from_mode(exposed);
        std::fs::set_permissions(file.path(), permissions).unwrap();
        let error = file.load().unwrap_err();
        assert!(matches!(error, ProfileError::Exposed { .. }), "{error}");
        let update = file.update(|_| Ok::<_, ProfileError>(()));
        assert!(update.is_err(), "{exposed:o}");
    }
    let permissions = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file.path(), permissions).unwrap();
    assert_eq!(file.load().unwrap().enforcer.unwrap().id, "bot");
}

#[test]
fn a_missing_or_damaged_profile_is_named_without_its_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let file = profile_in(directory.path());
    let missing = file.load().unwrap_err().to_string();
    assert!(
        missing.contains("work.toml") && missing.contains("countersign join"),
        "{missing}"
    );
    put(&file, "bot");
    let text = std::fs::read_to_string(file.path()).unwrap();
    for (from, to) in [
        ("api_key = ", "api_key "),
        ("csk_hush\"", "csk_hush"),
        ("tenant = ", "tennant = "),
        ("[enforcer]", "[enforcer"),
    ] {
        let damaged = text.replacen(from, to, 1);
        assert_ne!(damaged, text, "{from}");
        std::fs::write(file.path(), damaged).unwrap();
        let shown = file.load().unwrap_err().to_string();
        assert!(shown.contains("work.toml is damaged in line "), "{shown}");
        assert!(!shown.contains("hush"), "{shown}");
        let debugged = format!("{:?}", file.load().unwrap_err());
        assert!(!debugged.contains("hush"), "{debugged}");
    }
    std::fs::write(file.path(), &text).unwrap();
    let debugged = format!("{:?}", file.load().unwrap());
    assert!(!debugged.contains("hush"), "{debugged}");
    let key = text
        .lines()
        .find(|line| line.starts_with("key = "))
        .unwrap();
    let key = key.trim_start_matches("key = ").trim_matches('"');
    assert_eq!(key.len(), 43);
    assert!(!debugged.contains(key), "{debugged}");
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let file = profile_in(directory.path());
    put(&file, "bot");
    std::thread::scope(|threads| {
        for number in 0..16 {
            let file = &file;
            threads.spawn(move || {
                let url = format!("http://127.0.0.1:{}", 1_000 + number);
                let change = |profile: &mut Profile| {
                    profile.enforcer.as_mut().unwrap().gateway.urls.push(url);
                    Ok::<_, ProfileError>(())
                };
                file.update(change).unwrap();
            });
        }
        // A reader sees a whole profile at every moment.
        for _ in 0..200 {
            assert_eq!(file.load().unwrap().enforcer.unwrap().id, "bot");
        }
    });
    let urls = file.load().unwrap().enforcer.unwrap().gateway.urls;
    assert_eq!(urls.len(), 17, "{urls:?}");
}

#[test]
fn what_a_killed_program_left_behind_is_in_nobodys_way() {
    let directory = tempfile::tempdir().unwrap();
    let file = profile_in(directory.path());
    put(&file, "bot");
    let part = file.path().with_extension("part");
    std::fs::write(&part, "[enforcer]\nid = \"half").unwrap();
    put(&file, "other");
    assert_eq!(file.load().unwrap().enforcer.unwrap().id, "other");
    assert_eq!(mode(file.path()), 0o600);
    assert!(!part.exists());
}

#[test]
fn a_change_that_fails_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = profile_in(directory.path());
    put(&file, "bot");
    let change = |profile: &mut Profile| {
        profile.enforcer = None;
        Err::<(), _>(ProfileError::Name)
    };
    file.update(change).unwrap_err();
    assert_eq!(file.load().unwrap().enforcer.unwrap().id, "bot");
}

#[test]
fn a_profiles_name_is_no_path() {
    for name in [
        "",
        ".",
        "..",
        "../other",
        "a/b",
        "-x",
        ".hidden",
        "a b",
        "ä",
        &"x".repeat(65),
    ] {
        let named = ProfileFile::named(name);
        assert!(matches!(named, Err(ProfileError::Name)), "{name:?}");
    }
}

#[test]
fn a_copy_from_before_a_new_pairing_says_nothing_about_it() {
    let record = |token: &str, devices: &[&str], revoked: &[&str]| ApproverRecord {
        id: "alice".to_owned(),
        paired_at: "2026-01-01T00:00:00Z".to_owned(),
        routing_token: token.to_owned(),
        checked_at: String::new(),
        devices: devices.iter().map(ToString::to_string).collect(),
        revoked: revoked.iter().map(ToString::to_string).collect(),
        added_by: BTreeMap::new(),
    };
    let learned = ApproverRecord {
        added_by: BTreeMap::from([("phone".to_owned(), "laptop".to_owned())]),
        checked_at: "2026-01-02T00:00:00Z".to_owned(),
        ..record("one", &["laptop", "phone"], &["watch"])
    };
    let mut same = record("one", &["laptop"], &[]);
    same.merge(&learned);
    assert_eq!(same, learned);
    let fresh = record("two", &["laptop"], &[]);
    let mut paired_again = fresh.clone();
    paired_again.merge(&learned);
    assert_eq!(paired_again, fresh, "the lost phone stays away");
}
