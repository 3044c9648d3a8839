//! What the platform endpoints take and answer.

use serde_json::{Value, json};

use super::super::Context;
use super::super::schema::{
    flag, hash, id, list, meaning, object, one_of, page, pattern, text, text_of, time, word,
};
use super::small::state;
use super::{APPROVER, DECIDED, ENFORCER, HASH};
use crate::gateway::administration::MAX_NAME_CHARS;
use crate::protocol::credential::RoleName;

/// A tenant of the examples.
pub const TENANT: &str = "01a1dd2f5ffd7004b20c8d6678c773dd";
/// A credential of the examples.
pub const CREDENTIAL: &str = "01a1dd30a1b27004b20c8d6678c773dd";
/// A signing key of the examples.
const PUBLIC_KEY: &str = "O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik";

/// The body of a new tenant.
pub fn new_tenant() -> Value {
    object([("name", text_of(1, MAX_NAME_CHARS))], [])
}

/// A tenant that was made.
pub fn made_tenant() -> Value {
    object([("tenantId", id()), ("name", text())], [])
}

/// A page of tenants.
pub fn tenants() -> Value {
    page(object(
        [("tenantId", id()), ("name", text()), ("createdAt", time())],
        [("disabledAt", time())],
    ))
}

/// The body of a new credential.
pub fn new_credential() -> Value {
    let roles = RoleName::ALL.map(RoleName::as_str);
    let members = || {
        [
            (
                "boundId",
                meaning(
                    text(),
                    "the one id it may act as; none for an administrator",
                ),
            ),
            ("expiresAt", time()),
            (
                "tenantId",
                meaning(id(), "for the operator, who must name one"),
            ),
        ]
    };
    let thumbprint = pattern("^(:*[0-9A-Fa-f]){64}:*$");
    let [bound, ends, tenant] = members();
    let key = object(
        [("role", one_of(&roles))],
        [("kind", word("apiKey")), bound, ends, tenant],
    );
    let certificate = object(
        [
            ("role", one_of(&roles)),
            ("kind", word("certificate")),
            (
                "thumbprint",
                meaning(thumbprint, "SHA-256 of the certificate"),
            ),
        ],
        members(),
    );
    json!({ "oneOf": [key, certificate] })
}

/// A credential that was made.
pub fn made_credential() -> Value {
    let key = meaning(text(), "shown this once; none for a certificate");
    object([("credentialId", id())], [("apiKey", key)])
}

/// A page of credentials.
pub fn credentials() -> Value {
    page(object(
        [
            ("credentialId", id()),
            ("tenantId", id()),
            ("kind", one_of(&["apiKey", "certificate"])),
            ("role", one_of(&RoleName::ALL.map(RoleName::as_str))),
            ("createdAt", time()),
        ],
        [
            ("boundId", id()),
            ("expiresAt", time()),
            ("revokedAt", time()),
            ("lastUsedAt", meaning(time(), "to the minute")),
        ],
    ))
}

/// An example of a page of credentials.
pub fn credentials_example(context: &Context<'_>) -> Value {
    json!({ "items": [{
        "credentialId": CREDENTIAL, "tenantId": TENANT, "kind": "apiKey", "role": "enforcer", "boundId": ENFORCER,
        "createdAt": context.earlier(),
    }], "nextCursor": null })
}

fn public_key() -> Value {
    let schema = pattern("^[0-9A-Za-z_-]{42}[048AEIMQUYcgkosw]=?$");
    meaning(schema, "Ed25519, of full order: 32 bytes in base64url")
}

/// The body of a key registration.
pub fn new_key() -> Value {
    object(
        [("publicKey", public_key())],
        [("notBefore", time()), ("notAfter", time())],
    )
}

/// An example of it.
pub fn new_key_example() -> Value {
    json!({ "publicKey": PUBLIC_KEY })
}

/// A key that was registered.
pub fn registered_key() -> Value {
    let members = [
        ("approverId", id()),
        ("signerKeyId", id()),
        ("publicKey", public_key()),
    ];
    object(members, [])
}

/// An example of it.
pub fn registered_example() -> Value {
    json!({ "approverId": "carol", "signerKeyId": "laptop", "publicKey": PUBLIC_KEY })
}

/// Keys in the list.
pub fn keys() -> Value {
    let key = object(
        [
            ("signerKeyId", id()),
            ("publicKey", public_key()),
            ("createdAt", time()),
        ],
        [
            ("notBefore", time()),
            ("notAfter", time()),
            ("revokedAt", time()),
        ],
    );
    object([("items", list(key))], [])
}

/// An example of keys in the list.
pub fn keys_example(context: &Context<'_>) -> Value {
    json!({ "items": [
        { "signerKeyId": "laptop", "publicKey": PUBLIC_KEY, "createdAt": context.earlier() },
    ] })
}

/// An exchange in the list.
pub fn exchange() -> Value {
    object(
        [
            ("requestId", id()),
            ("state", state()),
            ("enforcerId", id()),
            ("approverIds", list(id())),
            ("artifactType", text()),
            ("artifactHash", hash()),
            ("createdAt", time()),
            ("expiresAt", time()),
        ],
        [
            ("decision", one_of(&["approve", "reject"])),
            ("decidedBy", id()),
            ("decidedAt", time()),
            ("verified", flag()),
            ("deliveredAt", time()),
        ],
    )
}

/// An example of an exchange in the list.
pub fn exchange_example(context: &Context<'_>) -> Value {
    json!({
        "requestId": DECIDED, "state": "decided", "enforcerId": ENFORCER, "approverIds": [APPROVER],
        "artifactType": "command.review", "artifactHash": HASH, "createdAt": context.earlier(),
        "expiresAt": context.later(), "decision": "approve", "decidedBy": APPROVER, "decidedAt": context.earlier(),
        "verified": true,
    })
}

/// A row of the audit.
pub fn audited() -> Value {
    object(
        [
            ("at", time()),
            ("actor", text()),
            ("action", text()),
            ("subject", text()),
        ],
        [
            ("address", text()),
            ("principal", meaning(text(), "the credential that was used")),
        ],
    )
}

/// An example of a row of the audit.
pub fn audited_example(context: &Context<'_>) -> Value {
    json!({
        "at": context.earlier(), "actor": format!("admin:{CREDENTIAL}"), "action": "credential.revoked",
        "subject": CREDENTIAL, "address": "192.0.2.7", "principal": CREDENTIAL,
    })
}
