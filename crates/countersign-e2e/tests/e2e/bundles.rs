//! Bundles have one spelling, and keys that are safe to use.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_e2e::{DeviceBundle, DeviceId, DeviceName, EnforcerBundle, Error};
use serde_json::{Value, json};

use super::people::{bot, device, known, world};

fn spell(json: &str) -> String {
    URL_SAFE_NO_PAD.encode(json)
}

fn members(bundle: &DeviceBundle) -> Value {
    let json = URL_SAFE_NO_PAD.decode(bundle.to_text().unwrap()).unwrap();
    serde_json::from_slice(&json).unwrap()
}

#[test]
fn what_is_printed_is_read_again() {
    let (keys, bundle) = device("phone");
    let again = DeviceBundle::parse(&bundle.to_text().unwrap()).unwrap();
    assert_eq!(again, bundle);
    assert_eq!(again.id(), keys.id());
    assert_eq!(again.id().to_string().len(), 22);
    assert_eq!(DeviceId::parse(&keys.id().to_string()).unwrap(), keys.id());
    let offer = EnforcerBundle::new(&world().enforcer, bot(), &mut known("offer")).unwrap();
    let text = offer.to_text().unwrap();
    assert_eq!(EnforcerBundle::parse(&text).unwrap(), offer);
}

#[test]
fn another_spelling_of_a_bundle_is_refused() {
    let (_, bundle) = device("phone");
    let text = bundle.to_text().unwrap();
    let json = String::from_utf8(URL_SAFE_NO_PAD.decode(&text).unwrap()).unwrap();
    let not_canonical = |json: &str| {
        let refused = DeviceBundle::parse(&spell(json)).unwrap_err();
        assert!(matches!(refused, Error::NotCanonical { .. }), "{refused}");
    };
    not_canonical(&json.replace("\":", "\": "));
    not_canonical(&json.replace("\"v\":1", "\"v\":1.0"));
    not_canonical(&json.replace("phone", "\\u0070hone"));
    for other in [
        format!("{text}="),
        format!("{text}=="),
        format!(" {text}"),
        text.replace('_', "/") + "+",
    ] {
        let refused = DeviceBundle::parse(&other).unwrap_err();
        assert!(
            matches!(refused, Error::Base64 { .. }),
            "{other}: {refused}"
        );
    }
}

#[test]
fn a_later_version_is_refused_as_such_whatever_else_it_has() {
    for version in [json!(2), json!("1"), json!(0), Value::Null] {
        let later = json!({"v": version, "new": true}).to_string();
        let parse = |json: &str| DeviceBundle::parse(&spell(json)).unwrap_err();
        let refused = parse(&super::texts::canon(&serde_json::from_str(&later).unwrap()));
        assert!(matches!(refused, Error::Version { .. }), "{refused}");
        assert!(refused.to_string().contains("update this client"));
    }
}

#[test]
fn missing_and_unknown_members_are_refused_by_name() {
    let (_, bundle) = device("phone");
    for name in ["ed25519", "x25519", "name", "v"] {
        let mut fewer = members(&bundle);
        fewer.as_object_mut().unwrap().remove(name);
        let refused = DeviceBundle::parse(&spell(&super::texts::canon(&fewer))).unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
    }
    let mut more = members(&bundle);
    more["proof"] = "AAAA".into();
    let refused = DeviceBundle::parse(&spell(&super::texts::canon(&more))).unwrap_err();
    assert!(refused.to_string().contains("/proof"), "{refused}");
}

#[test]
fn a_label_is_read_as_it_was_and_one_that_may_not_be_shown_is_refused() {
    let offer = EnforcerBundle::new(&world().enforcer, bot(), &mut known("offer")).unwrap();
    let longest = "x".repeat(256);
    for label in ["build machine", "Rechner 7 – Büro", &longest] {
        let text = offer.clone().labelled(Some(label)).to_text().unwrap();
        let read = EnforcerBundle::parse(&text).unwrap();
        assert_eq!(read.label(), Some(label));
    }
    let json = URL_SAFE_NO_PAD.decode(offer.to_text().unwrap()).unwrap();
    let members: Value = serde_json::from_slice(&json).unwrap();
    let long = format!("{longest}x");
    for label in [
        json!(""),
        json!(" "),
        json!("a\u{1b}[2Jb"),
        json!("a\u{200b}b"),
        json!("a\u{202e}b"),
        json!(long),
        json!(7),
        Value::Null,
    ] {
        let mut other = members.clone();
        other["label"] = label.clone();
        let refused = EnforcerBundle::parse(&spell(&super::texts::canon(&other))).unwrap_err();
        assert!(refused.to_string().contains("/label"), "{label}: {refused}");
    }
}

/// The points of small order on Curve25519 and its twist, by their u coordinates, and other
/// spellings of keys.
const BAD_X25519: [(&str, &str); 9] = [
    (
        "zero",
        "0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "one",
        "0100000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "order 8",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    ),
    (
        "order 8, the other",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    ),
    (
        "minus one",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ),
    (
        "the prime",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ),
    (
        "the prime and one",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ),
    (
        "nine, spelled as the prime and nine",
        "f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ),
    (
        "nine with the unused bit",
        "0900000000000000000000000000000000000000000000000000000000000080",
    ),
];

#[test]
fn weak_keys_are_refused() {
    let (_, bundle) = device("phone");
    let with = |name: &str, key: &[u8]| {
        let mut bundle = members(&bundle);
        bundle[name] = URL_SAFE_NO_PAD.encode(key).into();
        DeviceBundle::parse(&spell(&super::texts::canon(&bundle)))
    };
    for (what, key) in BAD_X25519 {
        let refused = with("x25519", &super::rfc9180::unhex(key)).unwrap_err();
        assert!(
            matches!(refused, Error::WeakKey { .. }),
            "{what}: {refused}"
        );
    }
    let mut nine = [0; 32];
    nine[0] = 9;
    with("x25519", &nine).unwrap();
    let mut identity = [0; 32];
    identity[0] = 1;
    for weak in [identity, [0; 32], [2; 32]] {
        let refused = with("ed25519", &weak).unwrap_err();
        assert!(matches!(refused, Error::WeakKey { .. }), "{refused}");
    }
    for length in [0, 31, 33] {
        for name in ["ed25519", "x25519"] {
            let refused = with(name, &vec![9; length]).unwrap_err();
            assert!(
                matches!(refused, Error::Length { expected: 32, .. }),
                "{refused}"
            );
        }
    }
}

#[test]
fn a_name_hides_nothing() {
    for name in [
        "",
        " ",
        "a\u{202e}b",
        "a\u{200b}b",
        "a\nb",
        "\u{feff}a",
        &"x".repeat(65),
    ] {
        assert_eq!(DeviceName::parse(name), Err(Error::DeviceName), "{name:?}");
    }
    for name in ["phone", "Zoë’s laptop", "电话", &"x".repeat(64)] {
        assert_eq!(DeviceName::parse(name).unwrap().as_str(), name);
    }
}

#[test]
fn secrets_are_not_printed() {
    let world = world();
    let (signing, decryption) = world.phone.secrets();
    for (printed, secrets) in [
        (format!("{:?}", world.phone), [*signing, *decryption]),
        (
            format!("{:?}", world.enforcer),
            [*world.enforcer.secret(), *decryption],
        ),
    ] {
        assert!(printed.contains("redacted"), "{printed}");
        for secret in secrets {
            assert!(!printed.contains(&URL_SAFE_NO_PAD.encode(secret)));
            assert!(!printed.contains(&format!("{secret:?}")));
        }
    }
    assert!(
        !format!("{:?}", world.opened()).contains("rm"),
        "an artifact is not printed"
    );
}
