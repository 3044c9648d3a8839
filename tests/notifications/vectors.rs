//! The example of RFC 8291.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::gateway::notifications::{MessageRandomness, encrypt};
use countersign::protocol::notification::PushKeys;
use p256::SecretKey;

use super::receiver::Browser;

const TEXT: &str = "When I grow up, I want to be a watermelon";
const SENDER: &str = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
const RECEIVER: &str = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94";
const RECEIVER_PUBLIC: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";
const SALT: &str = "DGv6ra1nlYgDCS1FRnbzlw";
const BODY: &str = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

fn bytes(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

#[test]
fn the_example_of_the_rfc_is_encrypted_as_it_says() {
    let keys = PushKeys {
        p256dh: bytes(RECEIVER_PUBLIC),
        auth: bytes(AUTH),
    };
    let ephemeral = MessageRandomness {
        key: SecretKey::from_slice(&bytes(SENDER)).unwrap(),
        salt: bytes(SALT).try_into().unwrap(),
    };
    let body = encrypt(TEXT.as_bytes(), &keys, &ephemeral).unwrap();
    assert_eq!(URL_SAFE_NO_PAD.encode(&body), BODY);
    let browser = Browser::from_parts(&bytes(RECEIVER), bytes(AUTH).try_into().unwrap());
    assert_eq!(browser.open(&body), TEXT.as_bytes());
}
