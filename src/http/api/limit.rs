//! Counts calls against the rate limits: by the credential's own id or the one in the path before
//! the body is read; for credentials that may act as any id, as a whole too, and by the id in the
//! body once that is known.

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::Method;
use axum::http::request::Parts;

use super::reply::AppState;
use crate::gateway::error::Error;
use crate::gateway::identity::caller::{Caller, CallerIdentity};
use crate::gateway::limit::RateClass;
use crate::protocol::id::{ApproverId, EnforcerId, TextId as _};

const SENDER_IN_BODY: [&str; 5] = [
    "/v1/artifacts",
    "/v1/artifact",
    "/v1/decisions",
    "/v1/decision",
    "/v1/acks",
];

/// The limit a call counts against; channels count where they are opened.
fn kind_of(method: &Method, path: &str, caller: &Caller) -> Option<RateClass> {
    match (method, path) {
        (_, "/v1/ws") => None,
        (_, path) if path.starts_with("/v1/sse/") => None,
        (&Method::GET, _) | (_, "/v1/waits") => Some(RateClass::Read),
        (_, "/v1/acks") => Some(RateClass::Ack),
        // From an enforcer it is the acknowledgement of a prompt.
        (_, "/v1/prompt") if matches!(caller, Caller::Enforcer(_)) => Some(RateClass::Ack),
        (
            _,
            "/v1/artifacts"
            | "/v1/artifact"
            | "/v1/prompt"
            | "/v1/session/event"
            | "/v1/pairing/initiate",
        ) => Some(RateClass::Submission),
        _ => Some(RateClass::Decision),
    }
}

/// A caller's credential, and the id it is bound to.
fn identity(caller: &Caller) -> Option<(&CallerIdentity, Option<&str>)> {
    match caller {
        Caller::Enforcer(caller) => Some((
            &caller.origin,
            caller.bound.as_ref().map(EnforcerId::as_str),
        )),
        Caller::Approver(caller) => Some((
            &caller.origin,
            caller.bound.as_ref().map(ApproverId::as_str),
        )),
        Caller::Admin(caller) => Some((&caller.origin, None)),
        Caller::Operator(_) => None,
    }
}

/// Counts a call before its body is read, and refuses it over the limit.
pub async fn admit(node: &AppState, parts: &mut Parts, caller: &Caller) -> Result<(), Error> {
    let path = parts.extensions.get::<MatchedPath>().cloned();
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let Some(kind) = kind_of(&parts.method, path, caller) else {
        return Ok(());
    };
    let Some((origin, bound)) = identity(caller) else {
        return node.limiter.admit_operator(kind);
    };
    let any = matches!(caller, Caller::Enforcer(_) | Caller::Approver(_)) && bound.is_none();
    if any && SENDER_IN_BODY.contains(&path) {
        return node.limiter.admit_any_id(kind, origin);
    }
    if any {
        let named = path_id(node, parts, caller).await;
        return admit_unbound(node, kind, origin, named.as_deref());
    }
    node.limiter.admit(kind, origin, bound)
}

/// Counts a call of a credential that may act as any id: by the id it names, and as a whole, or it
/// could name another id each time. The id first: one that is used up must not use up the others.
fn admit_unbound(
    node: &AppState,
    kind: RateClass,
    origin: &CallerIdentity,
    named: Option<&str>,
) -> Result<(), Error> {
    node.limiter.admit(kind, origin, named)?;
    node.limiter.admit_any_id(kind, origin)
}

/// Counts a channel or a frame of an identity.
pub fn admit_identity(
    node: &AppState,
    kind: RateClass,
    origin: &CallerIdentity,
    bound: bool,
    id: &str,
) -> Result<(), Error> {
    if bound {
        return node.limiter.admit(kind, origin, Some(id));
    }
    admit_unbound(node, kind, origin, Some(id))
}

/// Refuses a credential that is bound to one id and names another in the path. This comes before
/// the limits: a call that is not allowed at all must not be told to wait.
pub async fn own_path(node: &AppState, parts: &mut Parts, caller: &Caller) -> Result<(), Error> {
    let Some((_, Some(_))) = identity(caller) else {
        return Ok(());
    };
    let Some(id) = path_id(node, parts, caller).await else {
        return Ok(());
    };
    // The handler refuses what is no id at all.
    match caller {
        Caller::Enforcer(caller) => EnforcerId::parse(&id)
            .map_or(Ok(()), |id| caller.acting(Some(id), "enforcerId").map(drop)),
        Caller::Approver(caller) => ApproverId::parse(&id)
            .map_or(Ok(()), |id| caller.acting(Some(id), "approverId").map(drop)),
        Caller::Admin(_) | Caller::Operator(_) => Ok(()),
    }
}

/// The id in the path, if it is of the caller's own kind: the caller acts as it.
async fn path_id(node: &AppState, parts: &mut Parts, caller: &Caller) -> Option<String> {
    let own = match caller {
        Caller::Enforcer(_) => "enforcerId",
        Caller::Approver(_) => "approverId",
        Caller::Admin(_) | Caller::Operator(_) => return None,
    };
    let names = RawPathParams::from_request_parts(parts, node).await.ok()?;
    let mut names = names.iter();
    names
        .find(|(name, _)| *name == own)
        .map(|(_, id)| id.to_owned())
}

/// Counts a call by the id in its body, unless the credential is bound to one.
pub fn admit_named(
    node: &AppState,
    kind: RateClass,
    origin: &CallerIdentity,
    bound: bool,
    id: &str,
) -> Result<(), Error> {
    if bound {
        return Ok(());
    }
    node.limiter.admit(kind, origin, Some(id))
}
