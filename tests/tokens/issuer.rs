//! Issuers' keys, and the tokens signed with them: good ones, and any that can be put together by
//! hand.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

/// The issuer of the tests' tokens.
pub const ISSUER: &str = "https://issuer.example";
/// Whom they are for.
pub const AUDIENCE: &str = "countersign-tests";
/// The secret that the issuer may share with the gateway.
pub const SHARED_SECRET: &str = "shared-secret-of-the-tests-0123456789abcdef";

/// A key made for these tests (PKCS #8), since making one takes long. It signs nothing else.
const RSA_KEY: &str = "\
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDTNnmxMgEqnfJB/Zznabg8My+xSDmOzsQEDYkK3g9/n2fbs+tZ\
ueDJwm8Siq5x9oXTGXFQ8mYA1UCULMuQMRA8r5JKpPFe8hxqfJS4eycXbxFfaksYJ5bzmAI8J+mmCO7hDHIss/mCSYvEnQD7YE20\
/8gAfyr2aNathf7RPZ/ulzzd1iMUO9sWhUlX3OX0DaTQTuW+IneoCRVwAiIQaB9TtrbeKnCQSxe88GsB595X9CKbuV2SCOUKeDl+\
2PzqG5v5HN5B7YvI/cWeptWkki+qfoTgOJwXjwmY3HJtNQnqwBt4O/GPwGkRDOdOvbOhp+2A23wVM4b00BcHtWiGVOA5AgMBAAEC\
ggEALxO70RaLswOMfU/5eo0SXvyruzCVf7KvdxXLP2xaeQA/RnWWViP7qgzX9AKMOmOP1YscukWlHbdqkvxfDQ8ahuQ9T7zu/dIq\
KkQFZA8zGeKMNT+8aDBe0YHGscDVr8fa8rdy9WrSCMu6xwKVtvHysA649f9iRJT+kKPGtb2uGaAdPyxD5RbqvTdt0JPOJnUJp2WO\
ihl9vjdmjrFCnXkqpn6E36vienhDFyzgQQyYNgVEORSqM9VIf753rjtu704J85gQElKL/XNHBzai9U9ld7iPHzA8C/0BcanQhzr3\
hY1CtUoAVVZQb7FUJbpoYWl3IKYp3ecjQSdxzPhd/wn0LwKBgQD2kz4bWZBziEgoZ7O/OyKy5ksU7zKqY8UpxLrw0j4dXgXsMyoR\
PUgo/uTzVhKUzQW9IRjgRhUHhQuAOiB17rhMdTR5XM93g7uACXhA1UmBxlE4ZkK614z9zxJxJywumIuYpJm9Ez5fQlg1e/Xkpa1Y\
xQUuurhM9voXV2N8Q8SIUwKBgQDbSTWLv9fBUUzx1IV2JGNVK2OeV3dzMSkINRCUC8qmkBFHert+2s9zfQkV1D+/onEWLhHhrmse\
aG4Fmtr6nj3hhkYAl11bfAMGCU9isnvUoPnWr1YLqD9KCPIOOVQxfg6d7bmbm5PfzJ/cIxbGfxi9wiHhJsOn1axgiyMjzJWzwwKB\
gEASxwLIZVcARO/q8rRwo3WljkEkXyATyPovmvxVRbrP4e4c5YORTx0ID2qEJVPxatpYrWQqEfDgS7rIYAMFQ3LqyfX3fhnqa2C8\
FTmTswQ8CoMDX7e5p3OUyZAJw9tf3HaP3ztYss6CKPXM/nqp6r+0gsI/1wB49Uf3d2ylF37tAoGBAKWOXR3YRgVO4z/FCsoKaPBZ\
ZMmcEbPnTqpCnfSX/nTIWjNUJxB8FJmFsgFIEKUW+DgdqiRv8bGweDhFFMSYCfIl1N4HaVVziDjbeJL0W+dJbba3A8ijSr0TieRR\
Rg5jtJdpbnNb/0W9EIg7+ar9M+m4EqoRATDKcm0lPu99OxzPAoGAP9HyUAzK9YVMgZ2/GDGp57wKr148rkYBJHsuc2mjht+xJM0m\
YeOGM1ie5JVEDqVKiKITltQi3XkEUMfpM+ULDjqVOyJqn29ZzWtIyTZFq6mfIgKP1qMpePm4phwtx2NubJowehwIpTM64YnPGfI/\
fWckBIB+WFYULotsn2VphDE=";

pub enum Signer {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(SigningKey),
    Shared(Vec<u8>),
}

/// A key of an issuer.
pub struct IssuerKey {
    /// Its id.
    pub id: String,
    /// The algorithm its tokens name.
    pub algorithm: &'static str,
    pub signer: Signer,
}

impl IssuerKey {
    /// A key for an algorithm. All RSA keys are the same one.
    pub fn new(id: &str, algorithm: &'static str) -> Self {
        let random = SystemRandom::new();
        let signer = match algorithm {
            "ES256" => {
                let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
                Signer::P256(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap())
            }
            "ES384" => {
                let kind = &ECDSA_P384_SHA384_FIXED_SIGNING;
                let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
                Signer::P384(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap())
            }
            "EdDSA" => {
                let mut seed = [0; 32];
                getrandom::fill(&mut seed).unwrap();
                Signer::Ed25519(SigningKey::from_bytes(&seed))
            }
            "HS256" => Signer::Shared(SHARED_SECRET.as_bytes().to_vec()),
            _ => {
                let der = STANDARD.decode(RSA_KEY).unwrap();
                Signer::Rsa(Box::new(RsaKeyPair::from_pkcs8(&der).unwrap()))
            }
        };
        Self {
            id: id.to_owned(),
            algorithm,
            signer,
        }
    }

    /// Its public half, as issuers publish it.
    pub fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let point = |key: &EcdsaKeyPair, curve: &str, length: usize| {
            let point = key.public_key().as_ref();
            let (x, y) = (text(&point[1..=length]), text(&point[length + 1..]));
            json!({ "kty": "EC", "crv": curve, "x": x, "y": y })
        };
        let mut jwk = match &self.signer {
            Signer::Rsa(key) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({ "kty": "RSA", "n": text(&public.n), "e": text(&public.e) })
            }
            Signer::P256(key) => point(key, "P-256", 32),
            Signer::P384(key) => point(key, "P-384", 48),
            Signer::Ed25519(key) => {
                let public = text(key.verifying_key().as_bytes());
                json!({ "kty": "OKP", "crv": "Ed25519", "x": public })
            }
            Signer::Shared(secret) => json!({ "kty": "oct", "k": text(secret) }),
        };
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    /// The header its tokens have.
    pub fn header(&self) -> Value {
        json!({ "alg": self.algorithm, "typ": "JWT", "kid": self.id })
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_text(&self.header().to_string(), &claims.to_string())
    }

    /// A token of exactly these texts.
    pub fn sign_text(&self, header: &str, claims: &str) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let signed = format!("{}.{}", text(header.as_bytes()), text(claims.as_bytes()));
        let signature = self.signature(signed.as_bytes());
        format!("{signed}.{}", text(&signature))
    }

    /// Its signature over a message.
    pub fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.signer {
            Signer::Rsa(key) => {
                let how: &dyn RsaEncoding = match self.algorithm {
                    "RS256" => &RSA_PKCS1_SHA256,
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    other => panic!("no RSA: {other}"),
                };
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(how, &random, message, &mut signature).unwrap();
                signature
            }
            Signer::P256(key) | Signer::P384(key) => {
                key.sign(&random, message).unwrap().as_ref().to_vec()
            }
            Signer::Ed25519(key) => key.sign(message).to_bytes().to_vec(),
            Signer::Shared(secret) => {
                let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
                ring::hmac::sign(&key, message).as_ref().to_vec()
            }
        }
    }
}

/// The real time in seconds since 1970, moved.
#[expect(
    clippy::disallowed_methods,
    reason = "issuers have clocks of their own"
)]
pub fn unix(ahead: i64) -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp() + ahead
}

/// Claims of a good token of a tenant, for ten minutes.
pub fn claims(tenant: &str, role: &str, id: &str) -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": format!("user-{id}"), "exp": unix(600), "iat": unix(0),
        "tenant": tenant, "role": role, "countersign_id": id,
    })
}

/// An answer of the authorization server about a good token.
pub fn active(tenant: &str, role: &str, id: &str) -> Value {
    let mut answer = claims(tenant, role, id);
    answer["active"] = json!(true);
    answer
}
