//! The known answers of `vectors` for sealed artifacts and prompts, checked with the libraries
//! alone.

use super::people::{World, alice, bot, known};
use super::texts::{canon, hex, parsed, unbase};
use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use countersign_e2e::{PlainPrompt, seal_artifact, seal_prompt};
use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, Kem, OpModeR, Serializable as _};
use serde_json::{Value, json};

/// The values that `seal` drew and computed, checked with the libraries alone.
pub fn explain(
    drawn: &[Vec<u8>],
    info: &str,
    context: &Value,
    ciphertext: &Value,
    (sender, recipients): (&[u8; 32], &[[u8; 32]]),
    plaintext: &str,
) -> Value {
    let [content_key, nonce, seeds @ ..] = drawn else {
        panic!("a content key and a nonce were drawn");
    };
    let key_aad = canon(context);
    let mut content = context.clone();
    content["recipients"] = ciphertext["recipients"].clone();
    let content_aad = canon(&content);
    let rows = ciphertext["recipients"].as_array().unwrap();
    assert_eq!(
        (rows.len(), seeds.len()),
        (recipients.len(), recipients.len())
    );
    let ephemeral = rows
        .iter()
        .zip(seeds)
        .zip(recipients)
        .map(|((row, seed), secret)| {
            let (private, public) = X25519HkdfSha256::derive_keypair(seed);
            assert_eq!(public.to_bytes().to_vec(), unbase(&row["encapsulated"]));
            let opened = hpke::single_shot_open::<AesGcm256, HkdfSha256, X25519HkdfSha256>(
                &OpModeR::Auth(<X25519HkdfSha256 as Kem>::PublicKey::from_bytes(sender).unwrap()),
                &<X25519HkdfSha256 as Kem>::PrivateKey::from_bytes(secret).unwrap(),
                &<X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(&unbase(&row["encapsulated"]))
                    .unwrap(),
                info.as_bytes(),
                &unbase(&row["key"]),
                key_aad.as_bytes(),
            );
            assert_eq!(opened.unwrap(), *content_key);
            json!({"ikmE": hex(seed), "skE": hex(&private.to_bytes())})
        });
    let ephemeral: Value = ephemeral.collect();
    assert_eq!(unbase(&ciphertext["nonce"]), *nonce);
    let (data, aad) = (unbase(&ciphertext["data"]), content_aad.as_bytes());
    let cipher = Aes256Gcm::new_from_slice(content_key).unwrap();
    let nonce: [u8; 12] = nonce.as_slice().try_into().unwrap();
    let opened = cipher
        .decrypt((&nonce).into(), Payload { msg: &data, aad })
        .unwrap();
    assert_eq!(opened, plaintext.as_bytes());
    json!({
        "hpkeInfo": info,
        "contentKey": hex(content_key),
        "ephemeral": ephemeral,
        "keyAssociatedData": key_aad,
        "contentAssociatedData": content_aad,
        "plaintext": plaintext,
        "ciphertext": ciphertext,
    })
}

pub fn artifact(world: &World) -> Value {
    let mut random = known("seal");
    let trusts = [&world.trust];
    let sealed = seal_artifact(
        &world.enforcer,
        &bot(),
        &world.artifact,
        &trusts,
        &mut random,
    );
    let context = json!({
        "v": 1,
        "requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8H",
        "artifactType": "command.review",
        "artifactHash": world.artifact.hash().to_string(),
        "expiresAt": "2026-02-21T12:10:00Z",
        "enforcerId": "build-bot",
    });
    let secrets = [*world.phone.secrets().1, *world.laptop.secrets().1];
    explain(
        &random.drawn,
        "countersign seal v1",
        &context,
        &parsed(&sealed.unwrap().to_text().unwrap()),
        (world.enforcer.encryption_key().as_bytes(), &secrets),
        world.artifact.text(),
    )
}

pub fn prompt(world: &World) -> Value {
    let text = json!({
        "requestId": "01J2V9K3M2W1J5R6S7T8U9V0W1",
        "artifactType": "prompt.send",
        "createdAt": "2026-02-21T12:01:00Z",
        "target": "agentChat",
        "text": "Please stop.",
        "promptHashAlg": "SHA-256",
    });
    let prompt = PlainPrompt::complete(&text.to_string(), &mut known("prompt salt")).unwrap();
    let mut random = known("prompt");
    let sealed = seal_prompt(
        &world.phone,
        &alice(),
        &world.pinned_enforcer,
        &prompt,
        &mut random,
    );
    let context = json!({
        "v": 1,
        "requestId": "01J2V9K3M2W1J5R6S7T8U9V0W1",
        "artifactType": "prompt.send",
        "promptHash": prompt.hash().to_string(),
        "approverId": "alice",
        "enforcerId": "build-bot",
        "deviceId": world.phone.id().to_string(),
    });
    explain(
        &random.drawn,
        "countersign prompt v1",
        &context,
        &parsed(&sealed.unwrap().to_text().unwrap()),
        (
            world.phone.encryption_key().as_bytes(),
            &[*world.enforcer.secret()],
        ),
        prompt.text(),
    )
}
