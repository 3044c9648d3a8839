//! Pairing in the dialect. The steps are those of every pairing; members have other names, and an
//! approver may also offer a code first.

use axum::extract::Request;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::caller::{CompatApprover, CompatEnforcer};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::{Approver, Enforcer};
use crate::gateway::{PairingStatus, PairingWord};
use crate::http::api::auth::As;
use crate::http::api::body::{self, BodyKind};
use crate::http::api::error::HttpResult;
use crate::http::api::reply::{AppState, extended, plain};
use crate::protocol::id::ApproverId;
use crate::protocol::json::JsonNode;
use crate::protocol::pairing::{
    CompletePairing, InitiatePairing, MAX_KEY_CHARS, MAX_LABEL_CHARS, Nonce, PairingCode,
};
use crate::protocol::reader::{MemberReader, ReadResult};

/// Longest answer of an approver to an enforcer.
const MAX_RESPONSE_BYTES: usize = 8 << 10;

/// The members that `initiate` and `claim` share. The device is only echoed, and the address of
/// the gateway ignored: it must not lead anybody elsewhere.
fn read_enforcer(
    reader: &mut MemberReader<'_, '_>,
) -> ReadResult<(InitiatePairing, Option<String>)> {
    let public_key = reader.optional_bounded_str("publicKey", MAX_KEY_CHARS)?;
    let x25519 = reader.optional_bounded_str("x25519PublicKey", MAX_KEY_CHARS)?;
    if public_key.is_some() && x25519.is_some() && public_key != x25519 {
        return Err(reader.refusal("x25519PublicKey", "the same key as publicKey"));
    }
    let initiate = InitiatePairing {
        enforcer: reader.id("enforcerId")?,
        label: reader.optional_label("enforcerLabel", MAX_LABEL_CHARS)?,
        workspace: reader.optional_label("workspaceName", MAX_LABEL_CHARS)?,
        public_key: public_key.or(x25519),
    };
    let device = reader.optional_label("deviceId", MAX_LABEL_CHARS)?;
    reader.optional_bounded_str("gatewayUrl", MAX_KEY_CHARS)?;
    reader.finish()?;
    Ok((initiate, device))
}

/// `POST /v1/pairing/initiate`.
pub async fn initiate(node: &AppState, caller: &Enforcer, request: Request) -> HttpResult {
    let parse = |document: &JsonNode<'_>| read_enforcer(&mut MemberReader::new(document, "")?);
    let (request, device) = body::read_as(node, request, BodyKind::Other, parse).await?;
    let begun = node.pairings.initiate_pairing(caller, request).await?;
    let code = begun.code.to_string();
    let answer = json!({
        "code": code, "nonce": begun.nonce, "expiresAt": begun.expires_at,
        "pairingCode": code, "pairingNonce": begun.nonce,
    });
    let answer = extended(answer, [("deviceId", device.map(Value::from))]);
    Ok(plain(StatusCode::OK, &answer))
}

/// The status of an attempt, with the members of the dialect beside the usual ones.
pub fn described(status: &PairingStatus) -> Value {
    let state = match status.status {
        PairingWord::Pending | PairingWord::Resolved => "Pending",
        PairingWord::Completed if status.in_force => "Completed",
        PairingWord::Completed => "Revoked",
        PairingWord::Expired => "Expired",
    };
    let mut answer = json!(status);
    answer["pairingNonce"] = json!(status.nonce);
    answer["state"] = state.into();
    if let Some(response) = status.response.as_deref().filter(|_| status.in_force) {
        answer["responseJson"] = response.into();
    }
    answer
}

/// Reads a completion, of the dialect or the protocol's own. The approver is never read from
/// `responseJson`, which the gateway does not look into.
fn read_completion(
    document: &JsonNode<'_>,
    bound: Option<&ApproverId>,
) -> Result<CompletePairing, Error> {
    let mut reader = MemberReader::new(document, "")?;
    if reader.object().get("pairingNonce").is_none() {
        return Ok(CompletePairing::parse(document)?);
    }
    let nonce = Nonce::parse(reader.str("pairingNonce")?);
    let response = reader.str("responseJson")?;
    if response.len() > MAX_RESPONSE_BYTES {
        let expected = format!("a string of at most {MAX_RESPONSE_BYTES} bytes");
        return Err(reader.refusal("responseJson", expected).into());
    }
    reader.finish()?;
    let unbound = "the approver (required), or a credential that is bound to one";
    let approver = bound.ok_or_else(|| reader.refusal("approverId", unbound))?;
    Ok(CompletePairing {
        nonce,
        approver: approver.clone(),
        public_key: None,
        response: Some(response.to_owned()),
        team: None,
    })
}

/// `POST /v1/pairing/complete`.
pub async fn complete(node: &AppState, caller: &Approver, request: Request) -> HttpResult {
    let parse = |document: &JsonNode<'_>| read_completion(document, caller.bound.as_ref());
    let request = body::read_as(node, request, BodyKind::Other, parse).await?;
    let nonce = request.nonce.clone();
    let paired = node.pairings.complete_pairing(caller, request).await?;
    let optional = [
        ("enforcerLabel", paired.label.map(Value::from)),
        ("workspaceName", paired.workspace.map(Value::from)),
    ];
    let answer = json!({
        "routingToken": paired.token, "status": "completed", "pairingNonce": nonce,
    });
    Ok(plain(StatusCode::OK, &extended(answer, optional)))
}

/// `POST /v1/pairing/pre-generate`.
pub async fn offer(As(node, CompatApprover(caller)): As<CompatApprover>) -> HttpResult {
    let offered = node.pairings.offer_pairing(&caller).await?;
    let answer = json!({
        "pairingCode": offered.code.to_string(), "pairingNonce": offered.nonce,
        "expiresAt": offered.expires_at,
    });
    Ok(plain(StatusCode::OK, &answer))
}

/// `POST /v1/pairing/claim`.
pub async fn claim(
    As(node, CompatEnforcer(caller)): As<CompatEnforcer>,
    request: Request,
) -> HttpResult {
    let parse = |document: &JsonNode<'_>| {
        let mut reader = MemberReader::new(document, "")?;
        let code = PairingCode::parse(reader.str("pairingCode")?);
        read_enforcer(&mut reader).map(|(claim, _)| (code, claim))
    };
    let (code, claim) = body::read_as(&node, request, BodyKind::Other, parse).await?;
    let claimed = node.pairings.claim_pairing(&caller, code, &claim).await?;
    let answer = json!({ "pairingNonce": claimed.nonce, "expiresAt": claimed.expires_at });
    Ok(plain(StatusCode::OK, &answer))
}
