//! Networks: the addresses in one, and invalid ones.

use countersign::config::Tls;
use countersign::http::server::proxied::TrustedProxies;
use serde_json::json;

fn network(text: &str) -> Result<TrustedProxies, serde_json::Error> {
    let tls: Tls = serde_json::from_value(json!({ "proxies": [text] }))?;
    Ok(TrustedProxies::new(&tls))
}

#[test]
fn a_network_holds_its_own_addresses_and_no_others() {
    for (text, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
        ("10.1.2.3/8", "10.255.0.1", "9.255.255.255"),
        ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
        ("192.0.2.128/25", "192.0.2.255", "192.0.2.127"),
        ("fd00::/8", "fdff::1", "fe00::"),
        ("::1", "::1", "::2"),
        ("10.0.0.0/8", "::ffff:10.1.1.1", "::ffff:11.1.1.1"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("::/0", "ffff::", "10.0.0.1"),
    ] {
        let network = network(text).unwrap();
        assert!(network.lists(inside.parse().unwrap()), "{text} {inside}");
        assert!(!network.lists(outside.parse().unwrap()), "{text} {outside}");
    }
}

#[test]
fn what_is_no_network_is_refused() {
    for text in [
        "",
        "10.0.0.0/",
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/-1",
        "10.0.0/8",
        "proxy.example",
        "10.0.0.0/8/8",
        "/8",
    ] {
        assert!(network(text).is_err(), "{text}");
    }
}
