//! The log of decisions and outcomes: checkpoints and tiles as C2SP has them, and proofs in plain JSON.

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::As;
use super::error::HttpResult;
use super::path::{self, PathPair};
use super::reply::{plain, typed};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::Member;
use crate::gateway::log::LOG_NUMBER;
use crate::protocol::id::RequestId;

/// `GET /v1/log/checkpoint`.
pub async fn checkpoint(As(node, caller): As<Member>) -> HttpResult {
    let (note, key) = node.log.checkpoint(&caller.origin().tenant).await?;
    let mut response = typed(StatusCode::OK, "text/plain; charset=utf-8", note.into());
    let key = HeaderValue::try_from(key).map_err(|_| Error::Internal)?;
    response.headers_mut().insert("countersign-log-key", key);
    Ok(response)
}

/// `GET /v1/log/tile/{level}/{tile}`.
pub async fn tile(
    as_member: As<Member>,
    PathPair(level, tile): PathPair<String, String>,
) -> HttpResult {
    read_tile(as_member, &[&level, &tile]).await
}

/// `GET /v1/log/tile/{level}/{tile}/{more}`: a partial tile, or one after the first 1,000.
pub async fn later_tile(as_member: As<Member>, request: Request) -> HttpResult {
    let path = request.uri().path().to_owned();
    let path = path.strip_prefix("/v1/log/tile/").unwrap_or_default();
    read_tile(as_member, &[path]).await
}

async fn read_tile(As(node, caller): As<Member>, path: &[&str]) -> HttpResult {
    let tenant = &caller.origin().tenant;
    let hashes = node.log.tile(tenant, &path.join("/")).await?;
    Ok(typed(
        StatusCode::OK,
        "application/octet-stream",
        hashes.into(),
    ))
}

#[derive(Deserialize)]
struct ProofQuery {
    #[serde(rename = "requestId")]
    request_id: Option<String>,
}

/// `GET /v1/log/proof?requestId=`.
pub async fn proof(As(node, caller): As<Member>, request: Request) -> HttpResult {
    node.log.require()?;
    let query = path::query::<ProofQuery>(request.uri())?;
    let request: RequestId = path::id("requestId", &query.request_id.unwrap_or_default())?;
    let entries = node.log.proofs(&caller.origin().tenant, &request).await?;
    let entries = entries
        .into_iter()
        .map(|entry| json!({ "kind": entry.kind, "digest": entry.digest, "proof": entry.proof }));
    let answer = json!({ "requestId": request, "entries": entries.collect::<Value>() });
    Ok(plain(StatusCode::OK, &answer))
}

#[derive(Deserialize)]
struct ConsistencyQuery {
    from: Option<String>,
    to: Option<String>,
    epoch: Option<String>,
}

/// `GET /v1/log/consistency?from=&to=`.
pub async fn consistency(As(node, caller): As<Member>, request: Request) -> HttpResult {
    node.log.require()?;
    let query = path::query::<ConsistencyQuery>(request.uri())?;
    let epoch = query
        .epoch
        .as_deref()
        .map(|text| number("epoch", Some(text)));
    let epoch = epoch
        .transpose()?
        .map(|epoch| i32::try_from(epoch).unwrap_or(i32::MAX));
    let (from, to) = (
        number("from", query.from.as_deref())?,
        number("to", query.to.as_deref())?,
    );
    let tenant = &caller.origin().tenant;
    let hashes = node.log.consistency(tenant, epoch, from, to).await?;
    let hashes: Vec<_> = hashes.iter().map(ToString::to_string).collect();
    Ok(plain(StatusCode::OK, &json!({ "hashes": hashes })))
}

fn number(name: &'static str, text: Option<&str>) -> Result<u64, Error> {
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or(Error::Parameter {
        name,
        expected: LOG_NUMBER,
    })
}
