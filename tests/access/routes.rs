//! Every route and who may call it.

use countersign::page::page;
use reqwest::Method;

/// A role, or the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Enforcer,
    Approver,
    Admin,
    Operator,
    /// An enforcer whose credential has the profile compat.
    CompatEnforcer,
    /// An approver whose credential has the profile compat.
    CompatApprover,
}

use Role::{Admin, Approver, CompatApprover, CompatEnforcer, Enforcer, Operator};

/// A route.
pub struct Route {
    pub method: &'static str,
    /// As the router spells it, perhaps with a query.
    pub path: &'static str,
    /// Nobody in particular: no credential is needed.
    pub roles: &'static [Role],
}

impl Route {
    /// The path about one exchange, and otherwise about things that may be called anything.
    pub fn path_for(&self, request: &str) -> String {
        self.path
            .replace("{requestId}", request)
            .replace("{approverId}", "alice")
            .replace("{enforcerId}", "build-bot")
            .replace("{enforcerDeviceId}", "build-bot")
            .replace("{signerKeyId}", "k")
            .replace("{deviceId}", "AAAAAAAAAAAAAAAAAAAAAA")
            .replace("{code}", "0000-0000")
            .replace("{nonce}", "n")
            .replace("{tenantId}", "t")
            .replace("{credentialId}", "c")
            .replace("{invitationId}", "i")
            .replace("{sessionId}", "s")
            .replace("{level}/{tile}/{part}/{width}", "0/x001/000.p/1")
            .replace("{level}/{tile}/{part}", "0/000.p/1")
            .replace("{level}/{tile}", "0/000")
            .replace("{teamId}", "AAECAwQFBgcICQoLDA0ODw")
            .replace("{version}", &page().version)
            .replace("icons/{file}", "icons/192.png")
            .replace("{directory}/{file}", "core/approver.js")
            .replace("{file}", "app.js")
            .replace("{notificationId}", "01a1dd30-a1b2-7004-b20c-8d6678c773dd")
    }

    pub fn method(&self) -> Method {
        self.method.parse().expect("a method")
    }
}

const fn route(method: &'static str, path: &'static str, roles: &'static [Role]) -> Route {
    Route {
        method,
        path,
        roles,
    }
}

/// The protocol's paths that answer in plain JSON.
const PLAIN: [&str; 18] = [
    "artifact",
    "consent",
    "decision",
    "enforcers",
    "integrations",
    "join",
    "log",
    "page",
    "pairing",
    "pairings",
    "policy",
    "presence",
    "prompt",
    "session",
    "status",
    "teams",
    "waits",
    "whoami",
];

/// Whether a path answers in plain JSON: whatever is not of the protocol, and some of what is.
pub fn is_plain(path: &str) -> bool {
    if [
        "/devices",
        "/introductions",
        "/invitations",
        "/notifications",
        "/teams",
    ]
    .iter()
    .any(|area| path.contains(area))
    {
        return true;
    }
    let area = path
        .strip_prefix("/v1/")
        .and_then(|rest| rest.split(['/', '?']).next());
    area.is_none_or(|area| PLAIN.contains(&area))
}

/// The roles that may call each route.
pub const ROUTES: &[Route] = &[
    route("POST", "/v1/artifacts", &[Enforcer]),
    route("POST", "/v1/decisions", &[Approver]),
    route("POST", "/v1/acks", &[Enforcer, Approver]),
    route("GET", "/v1/approvers/{approverId}/inbox", &[Approver]),
    route(
        "GET",
        "/v1/approvers/{approverId}/inbox/expired",
        &[Approver],
    ),
    route(
        "DELETE",
        "/v1/approvers/{approverId}/inbox/{requestId}",
        &[Approver],
    ),
    route(
        "GET",
        "/v1/exchanges/{requestId}",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/exchanges/{requestId}/outcome",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/exchanges/{requestId}/wait?timeout=1",
        &[Enforcer, Admin],
    ),
    route("POST", "/v1/exchanges/{requestId}/withdraw", &[Enforcer]),
    route("PUT", "/v1/exchanges/{requestId}/ciphertext", &[Enforcer]),
    route(
        "POST",
        "/v1/exchanges/{requestId}/refresh",
        &[Approver, Admin],
    ),
    route(
        "POST",
        "/v1/requests/{requestId}/refresh",
        &[Approver, Admin],
    ),
    route("GET", "/v1/sse/approvers/{approverId}", &[Approver]),
    route("GET", "/v1/sse/enforcers/{enforcerId}", &[Enforcer]),
    route(
        "GET",
        "/v1/ws?role=enforcer&id=build-bot",
        &[Enforcer, Approver],
    ),
    route("POST", "/v1/artifact", &[Enforcer]),
    route("POST", "/v1/decision", &[Approver]),
    route("POST", "/v1/prompt", &[Enforcer, Approver, Admin]),
    route(
        "GET",
        "/v1/prompt/{requestId}",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/enforcers/{enforcerId}/prompts",
        &[Enforcer, Admin],
    ),
    route("GET", "/v1/whoami", &[Enforcer, Approver, Admin]),
    route("POST", "/v1/waits?timeout=1", &[Enforcer, Approver, Admin]),
    route("GET", "/v1/page", &[]),
    route("GET", "/v1/status", &[]),
    route("POST", "/v1/pairing/initiate", &[Enforcer]),
    route("GET", "/v1/pairing/resolve/{code}", &[Approver]),
    route(
        "GET",
        "/v1/pairing/status/{nonce}",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/pairing/{nonce}/status",
        &[Enforcer, Approver, Admin],
    ),
    route("POST", "/v1/pairing/complete", &[Approver]),
    route("POST", "/v1/pairing/revoke", &[Enforcer, Approver, Admin]),
    route("GET", "/v1/pairings", &[Enforcer, Approver]),
    route("POST", "/v1/approvers/{approverId}/devices", &[Approver]),
    route(
        "GET",
        "/v1/approvers/{approverId}/devices",
        &[Enforcer, Approver, Admin],
    ),
    route("DELETE", "/v1/approvers/{approverId}/devices", &[Admin]),
    route(
        "DELETE",
        "/v1/approvers/{approverId}/devices/{deviceId}",
        &[Approver],
    ),
    route(
        "POST",
        "/v1/approvers/{approverId}/invitations",
        &[Approver],
    ),
    route(
        "GET",
        "/v1/approvers/{approverId}/invitations/{invitationId}",
        &[Approver],
    ),
    route(
        "PUT",
        "/v1/approvers/{approverId}/invitations/{invitationId}",
        &[Approver],
    ),
    route(
        "DELETE",
        "/v1/approvers/{approverId}/invitations/{invitationId}",
        &[Approver],
    ),
    route(
        "POST",
        "/v1/approvers/{approverId}/introductions",
        &[Approver],
    ),
    route(
        "GET",
        "/v1/approvers/{approverId}/introductions",
        &[Approver],
    ),
    route("GET", "/v1/approvers/{approverId}/teams", &[Approver]),
    route("POST", "/v1/teams", &[Approver]),
    route("POST", "/v1/teams/{teamId}/states", &[Approver]),
    route(
        "GET",
        "/v1/teams/{teamId}/states",
        &[Enforcer, Approver, Admin],
    ),
    route("POST", "/v1/teams/{teamId}/invitations", &[Approver]),
    route("POST", "/v1/teams/{teamId}/consents", &[Approver]),
    route(
        "GET",
        "/v1/teams/{teamId}/consents",
        &[Enforcer, Approver, Admin],
    ),
    route("POST", "/v1/teams/{teamId}/introductions", &[Approver]),
    route(
        "GET",
        "/v1/teams/{teamId}/introductions",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/approvers/{approverId}/notifications",
        &[Approver, Admin],
    ),
    route(
        "POST",
        "/v1/approvers/{approverId}/notifications",
        &[Approver, Admin],
    ),
    route(
        "DELETE",
        "/v1/approvers/{approverId}/notifications/{notificationId}",
        &[Approver, Admin],
    ),
    route(
        "POST",
        "/v1/approvers/{approverId}/notifications/{notificationId}/test",
        &[Approver, Admin],
    ),
    route(
        "GET",
        "/v1/presence/enforcers",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/presence/enforcers/{enforcerDeviceId}",
        &[Enforcer, Approver, Admin],
    ),
    route("GET", "/v1/log/checkpoint", &[Enforcer, Approver, Admin]),
    route(
        "GET",
        "/v1/log/tile/{level}/{tile}",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/log/tile/{level}/{tile}/{part}",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/log/tile/{level}/{tile}/{part}/{width}",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/log/proof?requestId={requestId}",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "GET",
        "/v1/log/consistency?from=1&to=1",
        &[Enforcer, Approver, Admin],
    ),
    route("POST", "/v1/session/event", &[Enforcer]),
    route(
        "GET",
        "/v1/session/{sessionId}",
        &[Enforcer, Approver, Admin],
    ),
    route("POST", "/platform/v1/tenants", &[Operator]),
    route("GET", "/platform/v1/tenants", &[Operator]),
    route("DELETE", "/platform/v1/tenants/{tenantId}", &[Operator]),
    route("POST", "/platform/v1/credentials", &[Admin, Operator]),
    route("GET", "/platform/v1/credentials", &[Admin, Operator]),
    route(
        "DELETE",
        "/platform/v1/credentials/{credentialId}",
        &[Admin, Operator],
    ),
    route(
        "POST",
        "/platform/v1/credentials/{credentialId}/code",
        &[Admin, Operator],
    ),
    route("POST", "/platform/v1/invitations", &[Admin, Operator]),
    route("GET", "/platform/v1/invitations", &[Admin, Operator]),
    route(
        "DELETE",
        "/platform/v1/invitations/{invitationId}",
        &[Admin, Operator],
    ),
    // Anyone with the code of an invitation.
    route("POST", "/v1/join", &[]),
    // Anyone with a certificate and its code.
    route("POST", "/platform/v1/certificates", &[]),
    route(
        "GET",
        "/platform/v1/approvers/{approverId}/keys",
        &[Enforcer, Approver, Admin],
    ),
    route(
        "PUT",
        "/platform/v1/approvers/{approverId}/keys/{signerKeyId}",
        &[Approver, Admin],
    ),
    route(
        "DELETE",
        "/platform/v1/approvers/{approverId}/keys/{signerKeyId}",
        &[Approver, Admin],
    ),
    route("POST", "/platform/v1/token-revocations", &[Admin]),
    route("GET", "/platform/v1/token-revocations", &[Admin]),
    route("GET", "/platform/v1/exchanges", &[Enforcer, Admin]),
    route(
        "POST",
        "/platform/v1/exchanges/{requestId}/cancel",
        &[Admin],
    ),
    route("GET", "/platform/v1/audit", &[Admin]),
    route("GET", "/echo", &[]),
    route("GET", "/v1/integrations/discovery", &[]),
    route("GET", "/v1/consent/status", &[CompatEnforcer]),
    route("GET", "/v1/policy/dnd/effective", &[CompatEnforcer]),
    route("POST", "/v1/presence/heartbeat", &[CompatEnforcer]),
    route("POST", "/v1/pairing/pre-generate", &[CompatApprover]),
    route("POST", "/v1/pairing/claim", &[CompatEnforcer]),
    route("GET", "/", &[]),
    route("GET", "/sw.js", &[]),
    route("GET", "/reload.js", &[]),
    route("GET", "/manifest.webmanifest", &[]),
    route("GET", "/icon.svg", &[]),
    route("GET", "/icons/{file}", &[]),
    route("GET", "/page/{version}/{file}", &[]),
    route("GET", "/page/{version}/{directory}/{file}", &[]),
    route("GET", "/docs", &[]),
    route("GET", "/openapi.json", &[]),
    route("GET", "/asyncapi.json", &[]),
    route("GET", "/livez", &[]),
    route("GET", "/readyz", &[]),
];
