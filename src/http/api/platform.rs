//! The platform endpoints: plain JSON, outside the protocol's media type and framing.

use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::{HttpResult, RefusalContext};
use super::path::{self, PageQuery, PathId, PathPair, PathParameter as _, QueryPage};
use super::reply::{extended, paged, plain};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::{
    Admin, AdminOrOperator, ApproverOrAdmin, EnforcerOrAdmin, Member, Operator,
};
use crate::gateway::{CredentialRequest, ExchangeListing, NewSigningKey, PlatformService};
use crate::protocol::credential::{CredentialKind, CredentialProfile, RoleName};
use crate::protocol::decision::SigningKey;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, CredentialId, EnforcerId, RequestId, SignerKeyId, TenantId};
use crate::protocol::json;
use crate::protocol::json::JsonNode;
use crate::protocol::key_proof::KeyProof;
use crate::protocol::reader::{InvalidMember, MemberReader};
use crate::protocol::refresh::parse_reason;
use crate::protocol::signature::PublicKey;

/// `POST /platform/v1/tenants`.
pub async fn create_tenant(As(node, operator): As<Operator>, request: Request) -> HttpResult {
    let parse = |document: &JsonNode<'_>| only_text(document, "name");
    let name = body::read_as(&node, request, BodyKind::Other, parse).await?;
    let administration = node.platform.administration(operator.actor());
    let tenant = administration.create_tenant(&name).await?;
    let answer = json!({ "tenantId": tenant, "name": name });
    Ok(plain(StatusCode::CREATED, &answer))
}

/// The text of an object that has one member.
pub fn only_text(document: &JsonNode<'_>, member: &'static str) -> Result<String, InvalidMember> {
    let mut reader = MemberReader::new(document, "")?;
    let text = reader.str(member)?.to_owned();
    reader.finish()?;
    Ok(text)
}

/// `GET /platform/v1/tenants`.
pub async fn list_tenants(
    As(node, operator): As<Operator>,
    QueryPage(page): QueryPage,
) -> HttpResult {
    let page = node.platform.tenants(&operator, &page).await?;
    Ok(paged(&page))
}

/// `DELETE /platform/v1/tenants/{tenantId}`.
pub async fn disable_tenant(
    As(node, operator): As<Operator>,
    PathId(tenant): PathId<TenantId>,
) -> HttpResult {
    let administration = node.platform.administration(operator.actor());
    administration.disable_tenant(&tenant).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Reads the body of a credential request, and the tenant it names.
fn read_credential(
    document: &JsonNode<'_>,
) -> Result<(Option<TenantId>, CredentialRequest), Error> {
    let mut reader = MemberReader::new(document, "")?;
    let role = reader.one_of("role", &RoleName::ALL.map(RoleName::as_str))?;
    let role = RoleName::parse(role).ok_or(Error::Internal)?;
    let bound_id = reader.optional_str("boundId")?.map(str::to_owned);
    let unbound = reader.optional_bool("unbound")?.unwrap_or(false);
    let kind = match reader.optional_str("kind")? {
        Some(_) => reader.word("kind")?,
        None => CredentialKind::ApiKey,
    };
    let profile = match reader.optional_str("profile")? {
        Some(_) => reader.word("profile")?,
        None => CredentialProfile::Strict,
    };
    let expires_at = reader.optional_timestamp("expiresAt")?;
    let tenant = reader.optional_id("tenantId")?;
    reader.finish()?;
    let request = CredentialRequest {
        role,
        bound_id,
        unbound,
        kind,
        profile,
        expires_at,
    };
    Ok((tenant, request))
}

/// `POST /platform/v1/credentials`.
pub async fn create_credential(
    As(node, caller): As<AdminOrOperator>,
    request: Request,
) -> HttpResult {
    let read = body::read_as(&node, request, BodyKind::Other, read_credential);
    let (tenant, request) = read.await?;
    let made = node
        .platform
        .create_credential(&caller, tenant, request)
        .await?;
    let mut answer = json!({ "credentialId": made.id });
    if let Some(key) = made.api_key {
        answer["apiKey"] = key.into();
    }
    if let Some(code) = made.code {
        answer["code"] = code.code.into();
        answer["codeExpiresAt"] = json!(code.expires_at);
    }
    Ok(plain(StatusCode::CREATED, &answer))
}

/// `GET /platform/v1/credentials`.
pub async fn list_credentials(
    As(node, caller): As<AdminOrOperator>,
    QueryPage(page): QueryPage,
) -> HttpResult {
    let page = node.platform.credentials(&caller, &page).await?;
    Ok(paged(&page))
}

/// `DELETE /platform/v1/credentials/{credentialId}`.
pub async fn revoke_credential(
    As(node, caller): As<AdminOrOperator>,
    PathId(credential): PathId<CredentialId>,
) -> HttpResult {
    node.platform
        .managed_by(&caller)
        .revoke_credential(&credential)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub fn key_json(key: &SigningKey) -> serde_json::Value {
    let answer = json!({
        "signerKeyId": key.id, "publicKey": key.public_key.to_text(), "createdAt": key.created_at,
    });
    let times = [
        ("notBefore", key.not_before),
        ("notAfter", key.not_after),
        ("revokedAt", key.revoked_at),
    ];
    extended(
        answer,
        times.map(|(name, at)| (name, at.map(|at| json!(at)))),
    )
}

fn read_key(
    id: SignerKeyId,
    document: &JsonNode<'_>,
) -> Result<(NewSigningKey, Option<KeyProof>), Error> {
    let mut reader = MemberReader::new(document, "")?;
    let public_key = PublicKey::parse(reader.str("publicKey")?).ok_or_else(|| {
        Error::invalid(
            "/publicKey",
            "an Ed25519 public key of full order: 32 bytes in base64url",
        )
    })?;
    let not_before = reader.optional_timestamp("notBefore")?;
    let not_after = reader.optional_timestamp("notAfter")?;
    let proof = reader.optional_nested("proof")?;
    let proof = proof.map(KeyProof::parse).transpose()?;
    reader.finish()?;
    let key = NewSigningKey {
        id,
        public_key,
        not_before,
        not_after,
        proof_nonce: None,
    };
    Ok((key, proof))
}

/// `PUT /platform/v1/approvers/{approverId}/keys/{signerKeyId}`.
pub async fn put_key(
    As(node, caller): As<ApproverOrAdmin>,
    PathPair(approver, key): PathPair<ApproverId, String>,
    request: Request,
) -> HttpResult {
    // Here as well, before the body is read.
    PlatformService::check_registrar(&caller, &approver)?;
    let id = path::id("signerKeyId", &key)?;
    let parse = |document: &JsonNode<'_>| read_key(id, document);
    let (key, proof) = body::read_as(&node, request, BodyKind::Other, parse).await?;
    let answer = json!({ "approverId": approver, "signerKeyId": key.id, "publicKey": key.public_key.to_text() });
    node.platform
        .register_key(&caller, &approver, key, proof)
        .await?;
    Ok(plain(StatusCode::OK, &answer))
}

/// `GET /platform/v1/approvers/{approverId}/keys`.
pub async fn list_keys(
    As(node, caller): As<Member>,
    PathId(approver): PathId<ApproverId>,
) -> HttpResult {
    let keys = node.platform.signing_keys(&caller, &approver).await?;
    let items: Vec<_> = keys.iter().map(key_json).collect();
    Ok(plain(StatusCode::OK, &json!({ "items": items })))
}

/// `DELETE /platform/v1/approvers/{approverId}/keys/{signerKeyId}`.
pub async fn revoke_key(
    As(node, caller): As<ApproverOrAdmin>,
    PathPair(approver, key): PathPair<ApproverId, SignerKeyId>,
) -> HttpResult {
    node.platform.revoke_key(&caller, &approver, &key).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /platform/v1/exchanges/{requestId}/cancel`.
pub async fn cancel(
    As(node, caller): As<Admin>,
    PathId(request): PathId<RequestId>,
    http: Request,
) -> HttpResult {
    let bytes = body::read(&node, http, BodyKind::Optional).await?;
    let reason = if bytes.is_empty() {
        None
    } else {
        let document = json::parse(&bytes).map_err(Error::from)?;
        parse_reason(&document, "").map_err(Error::from)?
    };
    node.exchanges
        .cancel(&caller, &request, reason.as_deref())
        .await
        .about(&request)?;
    let answer = json!({ "requestId": request, "state": ExchangeState::Cancelled });
    Ok(plain(StatusCode::OK, &answer))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListingQuery {
    state: Option<String>,
    enforcer_id: Option<String>,
    approver_id: Option<String>,
    #[serde(flatten)]
    page: PageQuery,
}

/// `GET /platform/v1/exchanges`.
pub async fn list_exchanges(As(node, caller): As<EnforcerOrAdmin>, uri: Uri) -> HttpResult {
    let query: ListingQuery = path::query(&uri)?;
    let state = |word: String| {
        ExchangeState::parse(&word).ok_or(Error::Parameter {
            name: "state",
            expected: "a state of an exchange",
        })
    };
    let listing = ExchangeListing {
        state: query.state.map(state).transpose()?,
        enforcer: query.enforcer_id.map(EnforcerId::read).transpose()?,
        approver: query.approver_id.map(ApproverId::read).transpose()?,
        page: query.page.into(),
    };
    let page = node.platform.list_exchanges(&caller, listing).await?;
    Ok(paged(&page))
}
