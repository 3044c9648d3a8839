//! The platform endpoints: plain JSON, outside the protocol's media type and framing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::auth::As;
use super::body::{self, BodyKind, PageQuery, PathParameters};
use super::error::{HttpRefusal, RefusalContext};
use super::reply::{AppState, plain};
use crate::gateway::caller::{
    Admin, AdminOrOperator, ApproverOrAdmin, EnforcerOrAdmin, Member, Operator,
};
use crate::gateway::error::Error;
use crate::gateway::{CredentialRequest, ExchangeListing, ListPage, NewSigningKey, PageRequest};
use crate::gateway::{ExchangeService, PlatformService};
use crate::protocol::credential::{CredentialKind, RoleName};
use crate::protocol::decision::SigningKey;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, CredentialId, RequestId, SignerKeyId, TenantId, TextId};
use crate::protocol::json;
use crate::protocol::key_proof::KeyProof;
use crate::protocol::reader::{InvalidMember, MemberReader};
use crate::protocol::refresh::parse_reason;
use crate::protocol::signature::PublicKey;

/// `POST /platform/v1/tenants`.
pub async fn create_tenant(
    State(node): State<AppState>,
    State(platform): State<Arc<PlatformService>>,
    As(operator): As<Operator>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let name = {
        let document = json::parse(&bytes).map_err(Error::from)?;
        let read = || -> Result<String, InvalidMember> {
            let mut reader = MemberReader::new(&document, "")?;
            let name = reader.str("name")?.to_owned();
            reader.finish()?;
            Ok(name)
        };
        read().map_err(Error::from)?
    };
    let administration = platform.administration(operator.actor());
    let tenant = administration.create_tenant(&name).await?;
    Ok(plain(
        StatusCode::CREATED,
        &json!({ "tenantId": tenant, "name": name }),
    ))
}

/// `GET /platform/v1/tenants`.
pub async fn list_tenants(
    State(platform): State<Arc<PlatformService>>,
    As(operator): As<Operator>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let page = platform.tenants(&operator, &page).await?;
    Ok(paged(&page))
}

/// `DELETE /platform/v1/tenants/{tenantId}`.
pub async fn disable_tenant(
    State(platform): State<Arc<PlatformService>>,
    As(operator): As<Operator>,
    PathParameters(tenant): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let tenant = TenantId::parse(&tenant).ok_or(Error::NotFound)?;
    let administration = platform.administration(operator.actor());
    administration.disable_tenant(&tenant).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Reads the body of a credential request, and the tenant it names.
fn read_credential(bytes: &[u8]) -> Result<(Option<TenantId>, CredentialRequest), Error> {
    let document = json::parse(bytes)?;
    let mut reader = MemberReader::new(&document, "")?;
    let role = reader.one_of("role", &RoleName::ALL.map(RoleName::as_str))?;
    let role = RoleName::parse(role).ok_or(Error::Internal)?;
    let bound_id = reader.optional_str("boundId")?.map(str::to_owned);
    let unbound = reader.optional_bool("unbound")?.unwrap_or(false);
    let kind = match reader.optional_str("kind")? {
        Some(_) => reader.word("kind", CredentialKind::ALL, CredentialKind::as_str)?,
        None => CredentialKind::ApiKey,
    };
    let expires_at = reader.optional_timestamp("expiresAt")?;
    let tenant = reader.optional_id("tenantId")?;
    reader.finish()?;
    Ok((
        tenant,
        CredentialRequest {
            role,
            bound_id,
            unbound,
            kind,
            expires_at,
        },
    ))
}

/// `POST /platform/v1/credentials`.
pub async fn create_credential(
    State(node): State<AppState>,
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<AdminOrOperator>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let (tenant, request) = read_credential(&bytes)?;
    let made = platform.create_credential(&caller, tenant, request).await?;
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
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<AdminOrOperator>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let page = platform.credentials(&caller, &page).await?;
    Ok(paged(&page))
}

/// `DELETE /platform/v1/credentials/{credentialId}`.
pub async fn revoke_credential(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<AdminOrOperator>,
    PathParameters(credential): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let credential = CredentialId::parse(&credential).ok_or(Error::NotFound)?;
    platform.revoke_credential(&caller, &credential).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub fn key_json(key: &SigningKey) -> serde_json::Value {
    let mut answer = json!({
        "signerKeyId": key.id,
        "publicKey": key.public_key.to_text(),
        "createdAt": key.created_at,
    });
    for (name, at) in [
        ("notBefore", key.not_before),
        ("notAfter", key.not_after),
        ("revokedAt", key.revoked_at),
    ] {
        if let Some(at) = at {
            answer[name] = json!(at);
        }
    }
    answer
}

fn read_key(id: SignerKeyId, bytes: &[u8]) -> Result<(NewSigningKey, Option<KeyProof>), Error> {
    let document = json::parse(bytes)?;
    let mut reader = MemberReader::new(&document, "")?;
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
    State(node): State<AppState>,
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<ApproverOrAdmin>,
    PathParameters((approver, key)): PathParameters<(String, String)>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    // Here as well, before the body is read.
    PlatformService::check_registrar(&caller, &approver)?;
    let id = body::path_id("signerKeyId", &key)?;
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let (key, proof) = read_key(id, &bytes)?;
    let answer = json!({ "approverId": approver, "signerKeyId": key.id, "publicKey": key.public_key.to_text() });
    platform
        .register_key(&caller, &approver, key, proof)
        .await?;
    Ok(plain(StatusCode::OK, &answer))
}

/// `GET /platform/v1/approvers/{approverId}/keys`.
pub async fn list_keys(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<Member>,
    PathParameters(approver): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    let keys = platform.signing_keys(&caller, &approver).await?;
    let items: Vec<_> = keys.iter().map(key_json).collect();
    Ok(plain(StatusCode::OK, &json!({ "items": items })))
}

/// `DELETE /platform/v1/approvers/{approverId}/keys/{signerKeyId}`.
pub async fn revoke_key(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<ApproverOrAdmin>,
    PathParameters((approver, key)): PathParameters<(String, String)>,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    let key: SignerKeyId = body::path_id("signerKeyId", &key)?;
    platform.revoke_key(&caller, &approver, &key).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /platform/v1/exchanges/{requestId}/cancel`.
pub async fn cancel(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Admin>,
    PathParameters(request): PathParameters<String>,
    http: Request,
) -> Result<Response, HttpRefusal> {
    let request = RequestId::parse(&request).ok_or(Error::NotFound)?;
    let bytes = body::read(&node, http, BodyKind::Optional).await?;
    let reason = if bytes.is_empty() {
        None
    } else {
        let document = json::parse(&bytes).map_err(Error::from)?;
        parse_reason(&document, "").map_err(Error::from)?
    };
    exchanges
        .cancel(&caller, &request, reason.as_deref())
        .await
        .about(&request)?;
    Ok(plain(
        StatusCode::OK,
        &json!({ "requestId": request, "state": ExchangeState::Cancelled }),
    ))
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
pub async fn list_exchanges(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<EnforcerOrAdmin>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    let query: ListingQuery = body::query(&uri)?;
    let state = query
        .state
        .map(|word| {
            ExchangeState::parse(&word).ok_or(Error::Parameter {
                name: "state",
                expected: "a state of an exchange",
            })
        })
        .transpose()?;
    let listing = ExchangeListing {
        state,
        enforcer: query
            .enforcer_id
            .map(|id| body::path_id("enforcerId", &id))
            .transpose()?,
        approver: query
            .approver_id
            .map(|id| body::path_id("approverId", &id))
            .transpose()?,
        page: query.page.into(),
    };
    let page = platform.list_exchanges(&caller, listing).await?;
    Ok(paged(&page))
}

pub(super) fn paged<T: Serialize>(page: &ListPage<T>) -> Response {
    plain(
        StatusCode::OK,
        &json!({ "items": page.items, "nextCursor": page.next }),
    )
}
