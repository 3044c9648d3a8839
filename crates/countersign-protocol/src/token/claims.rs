//! Judges the claims of a token. A claim that is present but malformed refuses the token; it is
//! never treated as absent.

use std::time::Duration;

use time::OffsetDateTime;

use super::error::TokenError;
use super::revocation::{TokenIdentity, is_name};
use crate::id::{EnforcerId, TenantId, TextId as _};
use crate::json::{self, JsonObject, JsonValue};
use crate::timestamp::Timestamp;

/// Claims that only ID tokens of `OpenID` Connect have.
const ID_TOKEN_CLAIMS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

#[derive(Debug, Clone)]
pub struct ClaimNames {
    pub tenant: String,
    pub role: String,
    /// The one id the token may act as.
    pub id: String,
}

#[derive(Debug)]
pub struct TokenRules {
    pub issuer: String,
    pub audience: String,
    /// Allowed difference between the issuer's clock and this node's.
    pub leeway: Duration,
    /// How long a token may be valid, since it was issued or from now on.
    pub max_lifetime: Duration,
    pub names: ClaimNames,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenClaims {
    pub tenant: TenantId,
    pub role: String,
    pub id: Option<String>,
    /// Prefixed with the name of its claim: a user may have the same name as a client.
    pub subject: String,
    /// The issuer of the token, if it is known.
    pub issuer: Option<String>,
    pub expires_at: Option<Timestamp>,
    pub identity: TokenIdentity,
}

/// Judges the claims of a token whose signature has been checked. `exp`, `iss`, `aud` and `sub` are
/// required.
pub fn judge_claims(
    payload: &[u8],
    rules: &TokenRules,
    now: Timestamp,
) -> Result<TokenClaims, TokenError> {
    let document = json::parse(payload).map_err(|_| TokenError::Claims)?;
    let claims = document.as_object().ok_or(TokenError::Claims)?;
    if text(claims, "iss") != Some(rules.issuer.as_str()) {
        return Err(TokenError::Claim("iss"));
    }
    if !is_for(claims, &rules.audience) {
        return Err(TokenError::Claim("aud"));
    }
    let leeway = time::Duration::try_from(rules.leeway).unwrap_or_default();
    let expires_at = instant(claims, "exp")?.ok_or(TokenError::Claim("exp"))?;
    if expires_at.inner().saturating_add(leeway) <= now.inner() {
        return Err(TokenError::Expired);
    }
    if ID_TOKEN_CLAIMS
        .iter()
        .any(|name| claims.get(name).is_some())
    {
        return Err(TokenError::IdToken);
    }
    check_issued(claims, rules.leeway, now)?;
    let issued_at = instant(claims, "iat")?.map_or(now, |at| at.min(now));
    let max_lifetime = time::Duration::try_from(rules.max_lifetime).unwrap_or(time::Duration::MAX);
    if expires_at.inner() - issued_at.inner() > max_lifetime.saturating_add(leeway) {
        return Err(TokenError::Lifetime);
    }
    let not_before = instant(claims, "nbf")?;
    if not_before.is_some_and(|at| at.inner().saturating_sub(leeway) > now.inner()) {
        return Err(TokenError::NotYet);
    }
    read(claims, &rules.names, &["sub"], Some(expires_at))
}

/// Refuses a token that claims to be issued later than clocks may differ. A revocation of the
/// tokens issued until now would not include it.
fn check_issued(
    claims: &JsonObject<'_>,
    leeway: Duration,
    now: Timestamp,
) -> Result<(), TokenError> {
    let latest = now.inner() + leeway;
    match instant(claims, "iat")? {
        Some(at) if at.inner() > latest => Err(TokenError::NotYet),
        _ => Ok(()),
    }
}

/// Judges an RFC 7662 response; `None` if it is not one. `nbf` is left to the authorization server,
/// `exp` and `iat` are not.
pub fn judge_introspection(
    answer: &[u8],
    names: &ClaimNames,
    audience: Option<&str>,
    leeway: Duration,
    now: Timestamp,
) -> Option<Result<TokenClaims, TokenError>> {
    let document = json::parse(answer).ok()?;
    let claims = document.as_object()?;
    let JsonValue::Bool(active) = claims.get("active")?.value else {
        return None;
    };
    if !active {
        return Some(Err(TokenError::Inactive));
    }
    let expires_at = instant(claims, "exp").ok()?;
    if expires_at.is_some_and(|at| at <= now) {
        return Some(Err(TokenError::Expired));
    }
    if audience.is_some_and(|audience| !is_for(claims, audience)) {
        return Some(Err(TokenError::Claim("aud")));
    }
    if let Err(error) = check_issued(claims, leeway, now) {
        return Some(Err(error));
    }
    Some(read(claims, names, &["sub", "client_id"], expires_at))
}

/// The subject is the first of `subjects` that is present.
fn read(
    claims: &JsonObject<'_>,
    names: &ClaimNames,
    subjects: &[&str],
    expires_at: Option<Timestamp>,
) -> Result<TokenClaims, TokenError> {
    let tenant = text(claims, &names.tenant).and_then(TenantId::parse);
    let id = match claims.get(&names.id) {
        None => None,
        // The ids of both roles have the same shape.
        Some(node) => Some(
            node.as_str()
                .filter(|id| EnforcerId::parse(id).is_some())
                .ok_or(TokenError::Claim("id"))?
                .to_owned(),
        ),
    };
    let subject = subjects
        .iter()
        .find_map(|name| claims.get(name).map(|node| (name, node)));
    let (name, subject) = subject.ok_or(TokenError::Claim("sub"))?;
    let subject = subject.as_str().filter(|subject| is_name(subject));
    let subject = subject.ok_or(TokenError::Claim("sub"))?;
    let token_id = match claims.get("jti") {
        None => None,
        Some(node) => Some(
            node.as_str()
                .filter(|id| is_name(id))
                .ok_or(TokenError::Claim("jti"))?
                .to_owned(),
        ),
    };
    Ok(TokenClaims {
        tenant: tenant.ok_or(TokenError::Claim("tenant"))?,
        role: text(claims, &names.role)
            .ok_or(TokenError::Claim("role"))?
            .to_owned(),
        id,
        subject: format!("{name}:{subject}"),
        // A JWT's has been compared; of an introspected token it is for the record alone.
        issuer: text(claims, "iss")
            .filter(|name| is_name(name))
            .map(str::to_owned),
        expires_at,
        identity: TokenIdentity {
            id: token_id,
            subject: subject.to_owned(),
            issued_at: instant(claims, "iat")?,
        },
    })
}

fn text<'n>(claims: &'n JsonObject<'_>, name: &str) -> Option<&'n str> {
    claims.get(name).and_then(|node| node.as_str())
}

/// Whether `aud`, a string or a list of them, names this audience.
fn is_for(claims: &JsonObject<'_>, audience: &str) -> bool {
    match claims.get("aud").map(|node| &node.value) {
        Some(JsonValue::String(only)) => only == audience,
        Some(JsonValue::Array(several)) => {
            several.iter().all(|node| node.as_str().is_some())
                && several.iter().any(|node| node.as_str() == Some(audience))
        }
        _ => false,
    }
}

/// A `NumericDate`: seconds since 1970, possibly with a fraction.
fn instant(claims: &JsonObject<'_>, name: &'static str) -> Result<Option<Timestamp>, TokenError> {
    let Some(node) = claims.get(name) else {
        return Ok(None);
    };
    let JsonValue::Number(seconds) = node.value else {
        return Err(TokenError::Claim(name));
    };
    OffsetDateTime::UNIX_EPOCH
        .checked_add(time::Duration::saturating_seconds_f64(seconds))
        .map(|at| Some(at.into()))
        .ok_or(TokenError::Claim(name))
}
