//! Artifacts: sealed and open, as they are submitted and as approvers get them.

use serde_json::{Map, Value, json};

use super::super::Context;
use super::super::schema::{
    Member, and_more, any_object, either, hash, id, list, meaning, object, one_of, shared, text,
    text_of, time, word,
};
use super::{APPROVER, DECIDED, ENFORCER, HASH, OPEN, envelope, hashed};
use crate::protocol::artifact::{ARTIFACT_TYPES, MAX_WORD_CHARS};
use crate::protocol::extensions::MAX_ACTIONS;

/// Something encrypted, of at most `limit` bytes.
pub fn ciphertext(limit: usize) -> Value {
    let data = text_of(0, limit);
    let known = object(
        [("alg", text()), ("data", data)],
        [("nonce", text()), ("tag", text()), ("aad", text())],
    );
    meaning(and_more(known), "further members pass through")
}

fn sealed_members(context: &Context<'_>) -> [Member; 4] {
    [
        ("artifactType", text_of(1, MAX_WORD_CHARS)),
        ("artifactHash", hash()),
        (
            "ciphertext",
            ciphertext(context.config.limits.artifact_bytes),
        ),
        ("expiresAt", time()),
    ]
}

fn metadata() -> Value {
    let known = object([], [("routingToken", text()), ("approverId", id())]);
    meaning(
        and_more(known),
        "`routingToken`, `approverId` and `tenantId` are for the gateway alone; the rest is handed on. `enforcerId` names the \
         sender of a bare object whose credential is bound to no id",
    )
}

/// A sealed artifact in a wire Envelope, which says what it is about.
fn sealed(context: &Context<'_>) -> Value {
    let members = sealed_members(context);
    meaning(
        object(members, [("metadata", metadata())]),
        "sealed: the gateway cannot read it",
    )
}

/// A sealed artifact that says itself what it is about.
fn sealed_alone(context: &Context<'_>) -> Value {
    let [kind, hash, ciphertext, ends] = sealed_members(context);
    let members = [("requestId", id()), kind, hash, ciphertext, ends];
    meaning(
        object(members, [("metadata", metadata())]),
        "sealed: the gateway cannot read it",
    )
}

/// Extensions: namespaced, and one of them known.
pub fn extensions(key: &str, known: Value) -> Value {
    let mut members = Map::new();
    members.insert(key.to_owned(), known);
    json!({ "type": "object", "propertyNames": { "pattern": "\\." }, "properties": members })
}

fn requested_actions() -> Value {
    let some = json!({ "type": "string", "minLength": 1 });
    let action = object(
        [
            (
                "id",
                meaning(some.clone(), "unlike the others, ignoring case"),
            ),
            ("caption", some),
            ("decision", one_of(&["approve", "reject"])),
        ],
        [("style", one_of(&["primary", "secondary", "danger"]))],
    );
    let mut actions = list(action);
    actions["minItems"] = 1.into();
    actions["maxItems"] = MAX_ACTIONS.into();
    object(
        [("version", json!({ "const": 1 })), ("actions", actions)],
        [],
    )
}

/// An open Artifact.
fn open(context: &Context<'_>) -> Value {
    let limit = context.config.limits.artifact_bytes;
    let payload = format!("at most {limit} bytes of JSON");
    let schema = object(
        [
            ("requestId", shared("UuidOrUlid")),
            ("artifactType", one_of(&ARTIFACT_TYPES)),
            ("repoRef", text_of(0, MAX_WORD_CHARS)),
            ("createdAt", time()),
            ("expiresAt", time()),
            ("payload", meaning(any_object(), &payload)),
            ("artifactHashAlg", word("SHA-256")),
            (
                "artifactHash",
                meaning(hash(), "over the canonical artifact without this member"),
            ),
        ],
        [
            ("sessionId", shared("UuidOrUlid")),
            ("baseRevision", text()),
            ("metadata", any_object()),
            (
                "extensions",
                extensions(&context.names.requested_actions, requested_actions()),
            ),
        ],
    );
    meaning(schema, "open: plaintext")
}

/// The schemas that others refer to.
pub fn shared_schemas(context: &Context<'_>) -> Vec<Member> {
    let mut schemas = vec![
        ("SealedArtifact", sealed(context)),
        ("SealedArtifactAlone", sealed_alone(context)),
    ];
    if context.config.artifacts.open {
        schemas.push(("OpenArtifact", open(context)));
    }
    schemas
}

/// The body of `artifact.submit`, where the Envelope says what it is about or the body does.
pub fn submitted(context: &Context<'_>, alone: bool) -> Value {
    let sealed = shared(if alone {
        "SealedArtifactAlone"
    } else {
        "SealedArtifact"
    });
    if context.config.artifacts.open {
        either([sealed, shared("OpenArtifact")])
    } else {
        sealed
    }
}

/// The body of `approval.request`.
pub fn approval_request(context: &Context<'_>) -> Value {
    let common = || {
        [
            ("enforcerLabel", text()),
            ("state", meaning(word("expired"), "in the expired inbox")),
        ]
    };
    let [label, state] = common();
    let sealed = object(
        [
            ("enforcerId", id()),
            ("artifactType", text()),
            ("artifactHash", hash()),
        ],
        [
            label,
            state,
            (
                "ciphertext",
                meaning(
                    ciphertext(context.config.limits.artifact_bytes),
                    "gone once scrubbed",
                ),
            ),
            ("expiresAt", time()),
            ("metadata", any_object()),
        ],
    );
    let open = object([("enforcerId", id()), ("artifact", any_object())], common());
    either([meaning(sealed, "sealed"), meaning(open, "open")])
}

/// An example of a sealed artifact.
pub fn sealed_example(context: &Context<'_>) -> Value {
    json!({
        "artifactType": "command.review", "artifactHash": HASH,
        "ciphertext": { "alg": "A256GCM", "nonce": "bm9uY2U", "data": "c2VhbGVk" },
        "expiresAt": context.later(),
    })
}

/// The same, as a bare object: it says what it is about, who sends it and who is asked.
pub fn bare_example(context: &Context<'_>, request: &str) -> Value {
    let mut body = sealed_example(context);
    body["requestId"] = request.into();
    body["metadata"] = json!({ "enforcerId": ENFORCER, "approverId": APPROVER });
    body
}

/// An example of an open Artifact.
pub fn open_example(context: &Context<'_>) -> Value {
    let artifact = json!({
        "requestId": OPEN, "artifactType": "plan.review", "repoRef": "repo:acme/widgets",
        "createdAt": context.earlier(), "expiresAt": context.later(),
        "payload": { "steps": ["remove the build directory"] }, "artifactHashAlg": "SHA-256",
        "extensions": { &context.names.requested_actions: {
            "version": 1, "actions": [{ "id": "go", "caption": "Go ahead", "decision": "approve", "style": "primary" }],
        }},
    });
    hashed(artifact, "artifactHash")
}

/// The envelope of an example.
pub fn example(context: &Context<'_>, request: &str, body: &Value) -> Value {
    let sender = json!({ "enforcerId": ENFORCER });
    let mut sent = envelope::from(context, "artifact.submit", request, &sender, body);
    sent["recipient"] = json!({ "approverId": APPROVER });
    sent
}

/// An example of an `approval.request`.
pub fn request_example(context: &Context<'_>) -> Value {
    let mut body = sealed_example(context);
    body["enforcerId"] = ENFORCER.into();
    body["enforcerLabel"] = "Build bot".into();
    let mut request = envelope::answer_until(context, "approval.request", DECIDED, &body);
    request["sender"]["enforcerId"] = ENFORCER.into();
    request["recipient"] = json!({ "approverId": APPROVER });
    request
}
