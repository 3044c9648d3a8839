//! Forged, stolen and broken tokens. Each gets the same refusal, and none is taken for want of a
//! check.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::issuer::{IssuerKey, Signer};
use super::{Provider, alice, by_jwt, not_taken, scene, try_token};
use crate::support::{Cluster, with, without};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_signed_by_the_issuer_is_not_taken() {
    let (rsa, ed) = (
        IssuerKey::new("rsa", "RS256"),
        IssuerKey::new("ed", "EdDSA"),
    );
    let (cluster, provider) = scene(1, &[&rsa, &ed]).await;
    let good = alice(&cluster).to_string();
    try_token(&cluster, &rsa.sign_text(&rsa.header().to_string(), &good))
        .await
        .expect(200);
    let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let payload = text(good.as_bytes());

    for none in ["none", "None", "NONE", "nOnE", "", "null"] {
        let header = text(json!({ "alg": none, "kid": "rsa" }).to_string().as_bytes());
        for signature in ["", "AA", &text(&[0; 256])] {
            let token = format!("{header}.{payload}.{signature}");
            not_taken(try_token(&cluster, &token).await, none);
        }
    }
    for header in [
        r#"{"kid":"rsa"}"#,
        r#"{"alg":null,"kid":"rsa"}"#,
        r#"{"alg":["RS256"],"kid":"rsa"}"#,
    ] {
        not_taken(
            try_token(&cluster, &rsa.sign_text(header, &good)).await,
            header,
        );
    }

    // The issuer's public key as a shared secret, in every form it is published in.
    let Signer::Rsa(pair) = &rsa.signer else {
        panic!("an RSA key")
    };
    let jwk = rsa.jwk();
    let public = ring::signature::RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
    let pkcs1 = ring::signature::KeyPair::public_key(pair.as_ref())
        .as_ref()
        .to_vec();
    let pem = format!(
        "-----BEGIN RSA PUBLIC KEY-----\n{}\n-----END RSA PUBLIC KEY-----\n",
        STANDARD.encode(&pkcs1)
    );
    let secrets = [
        public.n,
        jwk["n"].as_str().unwrap().as_bytes().to_vec(),
        jwk.to_string().into_bytes(),
        pkcs1,
        pem.into_bytes(),
        Vec::new(),
    ];
    for secret in secrets {
        let forger = IssuerKey {
            id: "rsa".into(),
            algorithm: "HS256",
            signer: Signer::Shared(secret),
        };
        not_taken(
            try_token(
                &cluster,
                &forger.sign_text(&forger.header().to_string(), &good),
            )
            .await,
            "HS256",
        );
    }

    // Another's key under the issuer's name; and keys the token brings along, or points to.
    let stranger = IssuerKey::new("ed", "EdDSA");
    not_taken(
        try_token(&cluster, &stranger.sign(&alice(&cluster))).await,
        "a stranger",
    );
    let elsewhere = Provider::start(&[&stranger]).await;
    let url = format!("{}/jwks", elsewhere.url);
    for (name, value) in [
        ("jwk", stranger.jwk()),
        ("jku", json!(url)),
        ("x5u", json!(url)),
        ("x5c", json!(["MIIB"])),
    ] {
        for key in [None, Some("ed"), Some("stranger")] {
            let mut header = json!({ "alg": "EdDSA", (name): value });
            if let Some(key) = key {
                header["kid"] = json!(key);
            }
            let token = stranger.sign_text(&header.to_string(), &good);
            not_taken(try_token(&cluster, &token).await, name);
        }
        // On a token of the issuer's own they mean nothing.
        let header = with(&ed.header(), &format!("/{name}"), value);
        let token = ed.sign_text(&header.to_string(), &good);
        try_token(&cluster, &token).await.expect(200);
    }
    assert_eq!(elsewhere.keys_read(), 0, "nobody went there");
    assert!(provider.keys_read() <= 2);

    // A key under another algorithm than its own.
    for (key, algorithm) in [
        (&rsa, "ES256"),
        (&rsa, "EdDSA"),
        (&ed, "RS256"),
        (&ed, "ES256"),
        (&rsa, "RS384"),
        (&rsa, "PS256"),
    ] {
        let header = with(&key.header(), "/alg", json!(algorithm)).to_string();
        not_taken(
            try_token(&cluster, &key.sign_text(&header, &good)).await,
            algorithm,
        );
    }
    let header = with(&ed.header(), "/crit", json!(["exp"])).to_string();
    not_taken(
        try_token(&cluster, &ed.sign_text(&header, &good)).await,
        "crit",
    );
    for crit in [json!([]), json!(null)] {
        let header = with(&ed.header(), "/crit", crit).to_string();
        not_taken(
            try_token(&cluster, &ed.sign_text(&header, &good)).await,
            "crit",
        );
    }
    // Another kind of token, signed by the same issuer.
    for kind in ["dpop+jwt", "logout+jwt", "secevent+jwt", "id_token", ""] {
        let header = with(&ed.header(), "/typ", json!(kind)).to_string();
        not_taken(
            try_token(&cluster, &ed.sign_text(&header, &good)).await,
            kind,
        );
    }
    for kind in ["JWT", "jwt", "at+jwt", "application/at+jwt"] {
        let header = with(&ed.header(), "/typ", json!(kind)).to_string();
        let token = ed.sign_text(&header, &good);
        try_token(&cluster, &token).await.expect(200);
    }
    // Without a key's name, and more than one that would do: none is guessed. (Here each is the
    // only one of its kind.)
    let second = IssuerKey::new("ed-2", "EdDSA");
    provider.publish(&[&rsa, &ed, &second]);
    let next = Cluster::with(1, |config| by_jwt(config, &provider)).await;
    try_token(&next, &second.sign(&alice(&next)))
        .await
        .expect(200);
    let nameless = second.sign_text(r#"{"alg":"EdDSA"}"#, &alice(&next).to_string());
    not_taken(try_token(&next, &nameless).await, "nameless");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_verifies_only_what_it_was_published_for() {
    let keys = [
        IssuerKey::new("encrypts", "ES256"),
        IssuerKey::new("other-alg", "RS256"),
        IssuerKey::new("signs-only", "ES256"),
        IssuerKey::new("good", "EdDSA"),
    ];
    let [encrypts, other, signs, good] = &keys;
    let provider = Provider::start(&[]).await;
    let shared = IssuerKey::new("shared", "HS256");
    provider.publish_as(super::provider::Says::Json(json!({ "keys": [
        with(&encrypts.jwk(), "/use", json!("enc")),
        with(&other.jwk(), "/alg", json!("RS512")),
        with(&without(&signs.jwk(), "/use"), "/key_ops", json!(["sign"])),
        shared.jwk(),
        { "kty": "OKP", "crv": "Ed25519", "kid": "weak", "x": URL_SAFE_NO_PAD.encode([0_u8; 32]) },
        { "kty": "RSA", "kid": "short", "n": URL_SAFE_NO_PAD.encode([0xff_u8; 64]), "e": "AQAB" },
        { "kty": "EC", "crv": "P-256", "kid": "off", "x": URL_SAFE_NO_PAD.encode([1_u8; 32]), "y": URL_SAFE_NO_PAD.encode([1_u8; 32]) },
        { "kty": "nonsense" }, 5, null,
        good.jwk(),
    ] })));
    let cluster = Cluster::with(1, |config| by_jwt(config, &provider)).await;
    try_token(&cluster, &good.sign(&alice(&cluster)))
        .await
        .expect(200);
    for key in [encrypts, other, signs, &shared] {
        not_taken(
            try_token(&cluster, &key.sign(&alice(&cluster))).await,
            &key.id,
        );
    }
    for name in ["weak", "short", "off"] {
        let algorithm = ["EdDSA", "RS256", "ES256"];
        for algorithm in algorithm {
            let header = json!({ "alg": algorithm, "kid": name }).to_string();
            let token = good.sign_text(&header, &alice(&cluster).to_string());
            not_taken(try_token(&cluster, &token).await, name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_any_byte_changed_is_not_taken() {
    let key = IssuerKey::new("k1", "ES256");
    let (cluster, _provider) = scene(1, &[&key]).await;
    let token = key.sign(&alice(&cluster));
    try_token(&cluster, &token).await.expect(200);
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signature] = parts.as_slice() else {
        panic!("three parts")
    };
    let mut bad = vec![
        format!("{header}.{payload}"),
        format!("{header}.{payload}."),
        format!("{header}..{signature}"),
        format!(".{payload}.{signature}"),
        format!("{header}.{payload}.{signature}."),
        format!("{header}.{payload}.{signature}.{signature}"),
        format!("{header}.{payload}.{signature}="),
        format!("{header}=.{payload}.{signature}"),
        format!("{header}.{payload}.{}", &signature[..signature.len() - 2]),
        format!("{header}.{payload}.{signature}AA"),
        format!("{payload}.{header}.{signature}"),
        format!("{header}.{payload}.{}", STANDARD.encode([0xfb_u8; 64])),
        "..".into(),
        ".".into(),
        "a.b.c".into(),
        "\u{7f}".into(),
        format!("{token}{}", "A".repeat(9_000)),
        format!("{}.{payload}.{signature}", "A".repeat(8_200)),
    ];
    for part in 0..3 {
        for at in [0, 1, parts[part].len() / 2, parts[part].len() - 2] {
            let mut parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            let old = parts[part].as_bytes()[at];
            let new = if old == b'A' { "B" } else { "A" };
            parts[part].replace_range(at..=at, new);
            bad.push(parts.join("."));
        }
    }
    // The same signature with other trailing bits is another spelling, and not taken either.
    let last = signature.chars().last().unwrap();
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let next = alphabet
        .chars()
        .nth(alphabet.find(last).unwrap() + 1)
        .unwrap();
    bad.push(format!(
        "{header}.{payload}.{}{next}",
        &signature[..signature.len() - 1]
    ));
    for token in &bad {
        let call = cluster.client(None);
        let call = call.call(reqwest::Method::GET, super::INBOX);
        let call = call.header("x-api-key", token);
        if let Ok(answer) = call.try_send().await {
            not_taken(answer, token);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_token_is_refused_without_being_looked_at() {
    let key = IssuerKey::new("k1", "EdDSA");
    let provider = Provider::start(&[&key]).await;
    let cluster = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        config.auth.jwt_max_bytes = 600;
    })
    .await;
    try_token(&cluster, &key.sign(&alice(&cluster)))
        .await
        .expect(200);
    let long = with(&alice(&cluster), "/padding", json!("x".repeat(600)));
    not_taken(try_token(&cluster, &key.sign(&long)).await, "long");
    // Nothing was fetched for the sake of its key.
    let stranger = IssuerKey::new("unknown", "EdDSA");
    not_taken(try_token(&cluster, &stranger.sign(&long)).await, "long");
    assert_eq!(provider.keys_read(), 1);
}
