//! Tenants and credentials.

use serde_json::json;

use super::super::super::Context;
use super::super::super::bodies::ENFORCER;
use super::super::super::bodies::platform::{self, CREDENTIAL, TENANT};
use super::super::super::content::Body;
use super::super::super::operation::Operation;
use super::super::super::schema::id;
use super::super::super::tag::Tag;
use crate::gateway::caller::{AdminOrOperator, Operator};
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;

/// `POST /platform/v1/tenants`.
pub fn create_tenant(context: &Context<'_>) -> Operation {
    Operation::new("createTenant", Tag::Administration, "Make a tenant")
        .by::<Operator>(context, Kind::Decision)
        .takes(
            Body::new(
                platform::new_tenant(),
                [("tenant", json!({ "name": "acme" }))],
            ),
            context.config.limits.body_bytes,
        )
        .answers(
            201,
            "The tenant.",
            platform::made_tenant(),
            json!({ "tenantId": TENANT, "name": "acme" }),
        )
}

/// `GET /platform/v1/tenants`.
pub fn list_tenants(context: &Context<'_>) -> Operation {
    let tenant = json!({ "tenantId": TENANT, "name": "acme", "createdAt": context.earlier() });
    Operation::new("listTenants", Tag::Administration, "List tenants")
        .by::<Operator>(context, Kind::Read)
        .paged(context)
        .answers(
            200,
            "A page.",
            platform::tenants(),
            json!({ "items": [tenant], "nextCursor": null }),
        )
}

/// `DELETE /platform/v1/tenants/{tenantId}`.
pub fn disable_tenant(context: &Context<'_>) -> Operation {
    Operation::new("disableTenant", Tag::Administration, "Disable a tenant")
        .text("Its credentials stop within five seconds; its data stays.")
        .by::<Operator>(context, Kind::Decision)
        .path("tenantId", id(), TENANT)
        .answers_empty(204, "It is disabled.")
        .refuses([Error::NotFound])
}

/// `POST /platform/v1/credentials`.
pub fn create_credential(context: &Context<'_>) -> Operation {
    let example = json!({ "role": "enforcer", "boundId": ENFORCER });
    Operation::new("createCredential", Tag::Administration, "Make a credential")
        .text("An administrator any of its tenant; the operator administrators alone, with `tenantId`.")
        .by::<AdminOrOperator>(context, Kind::Decision)
        .takes(
            Body::new(platform::new_credential(), [("enforcer", example)]),
            context.config.limits.body_bytes,
        )
        .timed()
        .answers(
            201,
            "The credential, and its key, shown this once.",
            platform::made_credential(),
            json!({ "credentialId": CREDENTIAL, "apiKey": format!("csk_{CREDENTIAL}_secret") }),
        )
        .refuses([
            Error::NotFound,
            Error::Taken {
                pointer: "/thumbprint",
            },
        ])
}

/// `GET /platform/v1/credentials`.
pub fn list_credentials(context: &Context<'_>) -> Operation {
    Operation::new("listCredentials", Tag::Administration, "List credentials")
        .text("Without their secrets: an administrator sees its tenant's, the operator all administrators'.")
        .by::<AdminOrOperator>(context, Kind::Read)
        .paged(context)
        .answers(
            200,
            "A page, ended ones included.",
            platform::credentials(),
            platform::credentials_example(context),
        )
}

/// `DELETE /platform/v1/credentials/{credentialId}`.
pub fn revoke_credential(context: &Context<'_>) -> Operation {
    Operation::new(
        "revokeCredential",
        Tag::Administration,
        "Revoke a credential",
    )
    .text("It stops on every node within five seconds, open channels included.")
    .by::<AdminOrOperator>(context, Kind::Decision)
    .path("credentialId", id(), CREDENTIAL)
    .answers_empty(204, "It is revoked.")
    .refuses([Error::NotFound])
}
