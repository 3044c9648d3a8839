//! External bearer tokens: parses a JWS in compact form, checks its signature, and judges its
//! claims. Written on ring by hand because jsonwebtoken has no ring backend and no injectable
//! clock, and does not read JSON strictly.

mod claims;
mod error;
mod key;
mod revocation;
mod signed;

pub use self::claims::{ClaimNames, TokenClaims, TokenRules, judge_claims, judge_introspection};
pub use self::error::TokenError;
pub use self::key::{KeySet, SharedSecret};
pub use self::revocation::{
    RevocationKind, RevocationLine, RevocationRequest, TokenIdentity, TokenRevocations,
};
pub use self::signed::{Algorithm, SignedToken, TokenHeader, looks_signed};
