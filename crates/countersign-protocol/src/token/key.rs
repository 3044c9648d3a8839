//! The keys that verify tokens: an issuer's public keys (JWKS) or one shared secret. A key verifies
//! only algorithms of its own kind; the token's header cannot change that.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

use super::error::TokenError;
use super::signed::{Algorithm, SignedToken};
use crate::json::{self, JsonObject};
use crate::signature::{PublicKey, Signature};

/// Shortest RSA modulus that verifies anything, in bytes.
const MIN_RSA_BYTES: usize = 256;

pub struct SharedSecret(ring::hmac::Key);

impl SharedSecret {
    pub fn new(secret: &[u8]) -> Self {
        Self(ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret))
    }

    pub fn check(&self, token: &SignedToken<'_>) -> Result<(), TokenError> {
        if token.header.algorithm != Algorithm::Hs256 {
            return Err(TokenError::Algorithm);
        }
        ring::hmac::verify(&self.0, token.signed.as_bytes(), &token.signature)
            .map_err(|_| TokenError::Signature)
    }
}

#[derive(Debug)]
struct VerificationKey {
    id: Option<String>,
    /// The only algorithm it may verify, if stated.
    algorithm: Option<String>,
    material: KeyMaterial,
}

#[derive(Debug)]
enum KeyMaterial {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(PublicKey),
}

#[derive(Debug)]
pub struct KeySet(Vec<VerificationKey>);

impl KeySet {
    /// Reads a JWK set, without keys that cannot verify tokens; `None` if it is no set.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let document = json::parse(bytes).ok()?;
        let keys = document.as_object()?.get("keys")?.as_array()?.iter();
        let keys = keys.filter_map(|key| VerificationKey::read(key.as_object()?));
        Some(Self(keys.collect()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks a token's signature with the key it names, or with the only key for its algorithm.
    pub fn check(&self, token: &SignedToken<'_>) -> Result<(), TokenError> {
        let named = |key: &&VerificationKey| match &token.header.key_id {
            Some(id) => key.id.as_ref() == Some(id),
            None => key.fits(token.header.algorithm),
        };
        let named: Vec<&VerificationKey> = self.0.iter().filter(named).collect();
        if named.is_empty() {
            return Err(TokenError::UnknownKey);
        }
        if token.header.key_id.is_none() && named.len() > 1 {
            return Err(TokenError::AmbiguousKey);
        }
        // Keys of different kinds may share an id.
        let mut fitting = named
            .into_iter()
            .filter(|key| key.fits(token.header.algorithm))
            .peekable();
        if fitting.peek().is_none() {
            return Err(TokenError::Algorithm);
        }
        if fitting.any(|key| key.verifies(token)) {
            return Ok(());
        }
        Err(TokenError::Signature)
    }
}

impl VerificationKey {
    fn read(key: &JsonObject<'_>) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(|node| node.as_str());
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        if key.get("use").is_some() && text("use") != Some("sig") {
            return None;
        }
        if let Some(operations) = key.get("key_ops") {
            let mut operations = operations.as_array()?.iter();
            if !operations.any(|node| node.as_str() == Some("verify")) {
                return None;
            }
        }
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let modulus = without_zeros(bytes("n")?);
                if modulus.len() < MIN_RSA_BYTES {
                    return None;
                }
                KeyMaterial::Rsa {
                    modulus,
                    exponent: without_zeros(bytes("e")?),
                }
            }
            ("EC", Some("P-256")) => KeyMaterial::P256(point(32, &bytes("x")?, &bytes("y")?)?),
            ("EC", Some("P-384")) => KeyMaterial::P384(point(48, &bytes("x")?, &bytes("y")?)?),
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(PublicKey::from_bytes(&bytes("x")?)?),
            // Symmetric keys do not belong in a public key set.
            _ => return None,
        };
        let algorithm = match key.get("alg") {
            None => None,
            Some(node) => Some(node.as_str()?.to_owned()),
        };
        Some(Self {
            id: text("kid").map(str::to_owned),
            algorithm,
            material,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        use Algorithm as A;
        let declared = self.algorithm.as_deref();
        declared.is_none_or(|declared| declared == algorithm.as_str())
            && match self.material {
                KeyMaterial::Rsa { .. } => matches!(
                    algorithm,
                    A::Rs256 | A::Rs384 | A::Rs512 | A::Ps256 | A::Ps384 | A::Ps512
                ),
                KeyMaterial::P256(_) => algorithm == A::Es256,
                KeyMaterial::P384(_) => algorithm == A::Es384,
                KeyMaterial::Ed25519(_) => algorithm == A::EdDsa,
            }
    }

    fn verifies(&self, token: &SignedToken<'_>) -> bool {
        use Algorithm as A;
        let (message, signature) = (token.signed.as_bytes(), token.signature.as_slice());
        let rsa = |parameters: &RsaParameters| match &self.material {
            KeyMaterial::Rsa { modulus, exponent } => RsaPublicKeyComponents {
                n: modulus,
                e: exponent,
            }
            .verify(parameters, message, signature)
            .is_ok(),
            _ => false,
        };
        let ecdsa = |algorithm, point: &[u8]| {
            let key = UnparsedPublicKey::new(algorithm, point);
            key.verify(message, signature).is_ok()
        };
        match (token.header.algorithm, &self.material) {
            (A::Rs256, _) => rsa(&RSA_PKCS1_2048_8192_SHA256),
            (A::Rs384, _) => rsa(&RSA_PKCS1_2048_8192_SHA384),
            (A::Rs512, _) => rsa(&RSA_PKCS1_2048_8192_SHA512),
            (A::Ps256, _) => rsa(&RSA_PSS_2048_8192_SHA256),
            (A::Ps384, _) => rsa(&RSA_PSS_2048_8192_SHA384),
            (A::Ps512, _) => rsa(&RSA_PSS_2048_8192_SHA512),
            (A::Es256, KeyMaterial::P256(point)) => ecdsa(&ECDSA_P256_SHA256_FIXED, point),
            (A::Es384, KeyMaterial::P384(point)) => ecdsa(&ECDSA_P384_SHA384_FIXED, point),
            (A::EdDsa, KeyMaterial::Ed25519(key)) => Signature::from_bytes(signature)
                .is_some_and(|signature| key.verifies(message, &signature)),
            (A::Es256 | A::Es384 | A::EdDsa | A::Hs256, _) => false,
        }
    }
}

/// An integer without leading zeros, which some issuers add.
fn without_zeros(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

/// An uncompressed curve point; each coordinate must have its full length.
fn point(length: usize, x: &[u8], y: &[u8]) -> Option<Vec<u8>> {
    (x.len() == length && y.len() == length).then(|| [&[4], x, y].concat())
}
