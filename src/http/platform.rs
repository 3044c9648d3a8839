//! The platform endpoints: plain JSON, outside the protocol's media type and framing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::auth::As;
use super::body::{self, Kind, PageQuery, Path};
use super::error::{About, Refusal};
use super::reply::{Node, plain};
use crate::gateway::caller::{
    Admin, AdminOrOperator, ApproverOrAdmin, EnforcerOrAdmin, Member, Operator,
};
use crate::gateway::error::Error;
use crate::gateway::{CredentialRequest, ExchangeListing, NewSigningKey, Page, PageRequest};
use crate::gateway::{Exchanges, Platform};
use crate::protocol::credential::{CredentialKind, RoleName};
use crate::protocol::decision::SigningKey;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, CredentialId, RequestId, SignerKeyId, TenantId, TextId};
use crate::protocol::json;
use crate::protocol::key_proof::KeyProof;
use crate::protocol::reader::{Invalid, Reader};
use crate::protocol::refresh::parse_reason;
use crate::protocol::signature::PublicKey;

/// `POST /platform/v1/tenants`.
pub async fn create_tenant(
    State(node): State<Node>,
    State(platform): State<Arc<Platform>>,
    As(operator): As<Operator>,
    request: Request,
) -> Result<Response, Refusal> {
    let bytes = body::read(&node, request, Kind::Other).await?;
    let name = {
        let document = json::parse(&bytes).map_err(Error::from)?;
        let read = || -> Result<String, Invalid> {
            let mut reader = Reader::new(&document, "")?;
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
    State(platform): State<Arc<Platform>>,
    As(operator): As<Operator>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let page = platform.tenants(&operator, &page).await?;
    Ok(paged(&page))
}

/// `DELETE /platform/v1/tenants/{tenantId}`.
pub async fn disable_tenant(
    State(platform): State<Arc<Platform>>,
    As(operator): As<Operator>,
    Path(tenant): Path<String>,
) -> Result<Response, Refusal> {
    let tenant = TenantId::parse(&tenant).ok_or(Error::NotFound)?;
    let administration = platform.administration(operator.actor());
    administration.disable_tenant(&tenant).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Reads the body of a credential request, and the tenant it names.
fn read_credential(bytes: &[u8]) -> Result<(Option<TenantId>, CredentialRequest), Error> {
    let document = json::parse(bytes)?;
    let mut reader = Reader::new(&document, "")?;
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
    State(node): State<Node>,
    State(platform): State<Arc<Platform>>,
    As(caller): As<AdminOrOperator>,
    request: Request,
) -> Result<Response, Refusal> {
    let bytes = body::read(&node, request, Kind::Other).await?;
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
    State(platform): State<Arc<Platform>>,
    As(caller): As<AdminOrOperator>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let page = platform.credentials(&caller, &page).await?;
    Ok(paged(&page))
}

/// `DELETE /platform/v1/credentials/{credentialId}`.
pub async fn revoke_credential(
    State(platform): State<Arc<Platform>>,
    As(caller): As<AdminOrOperator>,
    Path(credential): Path<String>,
) -> Result<Response, Refusal> {
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
    let mut reader = Reader::new(&document, "")?;
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
    State(node): State<Node>,
    State(platform): State<Arc<Platform>>,
    As(caller): As<ApproverOrAdmin>,
    Path((approver, key)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Refusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    // Here as well, before the body is read.
    Platform::check_registrar(&caller, &approver)?;
    let id = body::path_id("signerKeyId", &key)?;
    let bytes = body::read(&node, request, Kind::Other).await?;
    let (key, proof) = read_key(id, &bytes)?;
    let answer = json!({ "approverId": approver, "signerKeyId": key.id, "publicKey": key.public_key.to_text() });
    platform
        .register_key(&caller, &approver, key, proof)
        .await?;
    Ok(plain(StatusCode::OK, &answer))
}

/// `GET /platform/v1/approvers/{approverId}/keys`.
pub async fn list_keys(
    State(platform): State<Arc<Platform>>,
    As(caller): As<Member>,
    Path(approver): Path<String>,
) -> Result<Response, Refusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    let keys = platform.signing_keys(&caller, &approver).await?;
    let items: Vec<_> = keys.iter().map(key_json).collect();
    Ok(plain(StatusCode::OK, &json!({ "items": items })))
}

/// `DELETE /platform/v1/approvers/{approverId}/keys/{signerKeyId}`.
pub async fn revoke_key(
    State(platform): State<Arc<Platform>>,
    As(caller): As<ApproverOrAdmin>,
    Path((approver, key)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    let key: SignerKeyId = body::path_id("signerKeyId", &key)?;
    platform.revoke_key(&caller, &approver, &key).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /platform/v1/exchanges/{requestId}/cancel`.
pub async fn cancel(
    State(node): State<Node>,
    State(exchanges): State<Arc<Exchanges>>,
    As(caller): As<Admin>,
    Path(request): Path<String>,
    http: Request,
) -> Result<Response, Refusal> {
    let request = RequestId::parse(&request).ok_or(Error::NotFound)?;
    let bytes = body::read(&node, http, Kind::Optional).await?;
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
    State(platform): State<Arc<Platform>>,
    As(caller): As<EnforcerOrAdmin>,
    uri: Uri,
) -> Result<Response, Refusal> {
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

pub(super) fn paged<T: Serialize>(page: &Page<T>) -> Response {
    plain(
        StatusCode::OK,
        &json!({ "items": page.items, "nextCursor": page.next }),
    )
}
