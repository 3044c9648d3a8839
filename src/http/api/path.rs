//! The parameters of paths and queries.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::{HttpRefusal, TransportError};
use super::reply::AppState;
use crate::e2e::TeamId;
use crate::gateway::PageRequest;
use crate::gateway::error::Error;
use crate::protocol::id::{
    ApproverId, CredentialId, EnforcerId, ID_EXPECTED, InvitationId, RequestId, SessionId,
    SignerKeyId, TenantId, TextId,
};
use crate::protocol::pairing::Nonce;

/// A parameter of a path.
pub trait PathParameter: Sized {
    fn read(text: String) -> Result<Self, Error>;
}

impl PathParameter for String {
    fn read(text: String) -> Result<Self, Error> {
        Ok(text)
    }
}

impl PathParameter for Nonce {
    fn read(text: String) -> Result<Self, Error> {
        Self::parse(&text).ok_or(Error::NotFound)
    }
}

impl PathParameter for TeamId {
    fn read(text: String) -> Result<Self, Error> {
        Self::parse(&text).map_err(|_| Error::NotFound)
    }
}

macro_rules! path_parameters {
    ($($id:ident: $refusal:expr),+ $(,)?) => {$(
        impl PathParameter for $id {
            fn read(text: String) -> Result<Self, Error> {
                <Self as TextId>::parse(&text).ok_or($refusal)
            }
        }
    )+};
}

path_parameters! {
    ApproverId: no_id("approverId"),
    EnforcerId: no_id("enforcerId"),
    SignerKeyId: no_id("signerKeyId"),
    CredentialId: Error::NotFound,
    InvitationId: Error::NotFound,
    RequestId: Error::NotFound,
    SessionId: Error::NotFound,
    TenantId: Error::NotFound,
}

fn no_id(name: &'static str) -> Error {
    Error::Parameter {
        name,
        expected: ID_EXPECTED,
    }
}

/// An id in a parameter, which must at least be an id.
pub fn id<T: TextId>(name: &'static str, text: &str) -> Result<T, Error> {
    T::parse(text).ok_or(no_id(name))
}

/// The texts in a path. One that is not UTF-8 is not found, in the framing of its route.
async fn texts<T: DeserializeOwned + Send>(
    parts: &mut Parts,
    node: &AppState,
) -> Result<T, HttpRefusal> {
    let found = Path::from_request_parts(parts, node).await;
    found.map_or_else(
        |_| Err(TransportError::NoSuchRoute.into()),
        |Path(found)| Ok(found),
    )
}

/// The parameter of a path that has one.
pub struct PathId<A>(pub A);

impl<A: PathParameter> FromRequestParts<AppState> for PathId<A> {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, node: &AppState) -> Result<Self, HttpRefusal> {
        Ok(Self(A::read(texts(parts, node).await?)?))
    }
}

/// The parameters of a path that has two.
pub struct PathPair<A, B>(pub A, pub B);

impl<A: PathParameter, B: PathParameter> FromRequestParts<AppState> for PathPair<A, B> {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, node: &AppState) -> Result<Self, HttpRefusal> {
        let (first, second) = texts(parts, node).await?;
        Ok(Self(A::read(first)?, B::read(second)?))
    }
}

/// The query as `T`.
pub fn query<T: for<'de> Deserialize<'de>>(uri: &Uri) -> Result<T, Error> {
    let query = Query::<T>::try_from_uri(uri).map_err(|_| Error::Parameter {
        name: "query",
        expected: "each parameter once, percent-encoded",
    })?;
    Ok(query.0)
}

/// The query's `cursor` and `limit`.
#[derive(Debug, Default, Deserialize)]
pub struct PageQuery {
    cursor: Option<String>,
    limit: Option<String>,
}

impl From<PageQuery> for PageRequest {
    fn from(query: PageQuery) -> Self {
        Self {
            cursor: query.cursor,
            limit: query.limit,
        }
    }
}

/// The page of a list that a query asks for.
pub struct QueryPage(pub PageRequest);

impl FromRequestParts<AppState> for QueryPage {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, HttpRefusal> {
        Ok(Self(query::<PageQuery>(&parts.uri)?.into()))
    }
}
