//! Proxies' headers about the client: believed from listed proxies, as far as they make sense.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::config;
use countersign::http::server::peer::PeerInfo;
use countersign::http::server::proxied::TrustedProxies;

use crate::support::tls::Authority;

fn proxies(header: &str) -> TrustedProxies {
    let networks = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap());
    TrustedProxies::new(&config::Tls {
        proxies: networks.to_vec(),
        client_cert_header: header.to_owned(),
        ..config::Tls::default()
    })
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::try_from(*name).unwrap(),
                HeaderValue::try_from(*value).unwrap(),
            )
        })
        .collect()
}

fn peer(address: &str) -> PeerInfo {
    PeerInfo {
        address: address.parse().unwrap(),
        encrypted: false,
        certificate: None,
    }
}

/// A certificate in base64, and its thumbprint.
fn certificate() -> (String, [u8; 32]) {
    let pair = Authority::new("clients").client();
    (STANDARD.encode(&pair.der), pair.thumbprint())
}

#[test]
fn the_client_is_the_right_most_address_that_is_no_proxy() {
    for (lines, expected) in [
        (&[][..], "10.0.0.1"),
        (&["192.0.2.1"], "192.0.2.1"),
        (&["6.6.6.6, 192.0.2.1"], "192.0.2.1"),
        (&["6.6.6.6", "192.0.2.1"], "192.0.2.1"),
        (&["192.0.2.1, 10.0.0.9,10.0.0.8"], "192.0.2.1"),
        (&["192.0.2.1", "10.0.0.9"], "192.0.2.1"),
        (&["192.0.2.1:4711, 10.0.0.9:80"], "192.0.2.1"),
        (&["[2001:db8::1]:4711, fd00::7"], "2001:db8::1"),
        (&["[2001:db8::1]"], "2001:db8::1"),
        (&["::ffff:192.0.2.1"], "192.0.2.1"),
        (&["10.0.0.7, 10.0.0.8"], "10.0.0.7"),
        (&["192.0.2.1, unknown"], "10.0.0.1"),
        (&["192.0.2.1, "], "10.0.0.1"),
        (&["nonsense, 192.0.2.1"], "192.0.2.1"),
    ] {
        let mut lines: Vec<_> = lines
            .iter()
            .map(|line| ("x-forwarded-for", *line))
            .collect();
        lines.push(("x-forwarded-proto", "https"));
        let (client, refused) = proxies("").client(peer("10.0.0.1"), &headers(&lines));
        assert!(refused.is_none() && client.encrypted);
        assert_eq!(
            client.address,
            expected.parse::<IpAddr>().unwrap(),
            "{lines:?}"
        );
    }
}

#[test]
fn the_nearest_proxy_must_have_been_called_over_tls() {
    for (lines, good) in [
        (&["https"][..], true),
        (&["HTTPS"], true),
        (&["wss"], true),
        (&["http, https"], true),
        (&[], false),
        (&["http"], false),
        (&["https, http"], false),
        (&["https", "https"], false),
        (&[""], false),
    ] {
        let lines: Vec<_> = lines
            .iter()
            .map(|line| ("x-forwarded-proto", *line))
            .collect();
        let (client, refused) = proxies("").client(peer("10.0.0.1"), &headers(&lines));
        assert_eq!(
            (client.encrypted, refused.is_none()),
            (good, good),
            "{lines:?}"
        );
    }
}

#[test]
fn nobody_else_is_believed() {
    let (shown, _) = certificate();
    let lines = [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-cert", shown.as_str()),
    ];
    let stranger = peer("127.0.0.1");
    let (client, refused) = proxies("x-cert").client(stranger, &headers(&lines));
    assert_eq!(client, stranger);
    assert!(refused.is_some());
    let (client, _) = proxies("").client(peer("10.0.0.1"), &headers(&lines));
    assert_eq!(
        client.certificate, None,
        "no header is believed unless named"
    );
    let twice = [lines[0], lines[2], lines[2]];
    let (client, _) = proxies("x-cert").client(peer("10.0.0.1"), &headers(&twice));
    assert_eq!(
        client.certificate, None,
        "one of the two may be the client's"
    );
    let (client, _) = proxies("x-cert").client(peer("10.0.0.1"), &headers(&lines));
    assert!(client.certificate.is_some());
}

#[test]
fn connections_come_from_proxies_or_from_this_machine() {
    let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
    let local = Some(at("192.0.2.7:8080"));
    for (peer, admitted) in [
        ("10.1.2.3:1000", true),
        ("[::ffff:10.1.2.3]:1000", true),
        ("[fd12::1]:1000", true),
        ("127.0.0.1:1000", true),
        ("[::1]:1000", true),
        ("192.0.2.7:1000", true),
        ("192.0.2.8:1000", false),
        ("[2001:db8::1]:1000", false),
    ] {
        assert_eq!(proxies("").admits(at(peer), local), admitted, "{peer}");
    }
}

#[test]
fn what_is_no_certificate_is_none() {
    let thumbprint = |value: &str| {
        let lines = [("x-forwarded-proto", "https"), ("x-cert", value)];
        let (client, _) = proxies("x-cert").client(peer("10.0.0.1"), &headers(&lines));
        client.certificate.map(|found| found.thumbprint)
    };
    for value in [
        "",
        "::",
        "%%%",
        "-----BEGIN%20CERTIFICATE-----",
        "not base64!",
        "%ff",
        // An empty sequence.
        "MAA=",
    ] {
        assert_eq!(thumbprint(value), None, "{value}");
    }
    let (shown, expected) = certificate();
    let between_colons = format!(":{shown}:");
    let escaped = shown.replace('+', "%2B").replace('=', "%3D");
    for value in [shown, between_colons, escaped] {
        assert_eq!(thumbprint(&value), Some(expected), "{value}");
    }
}
