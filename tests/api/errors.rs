//! The catalogue of errors in openapi.yaml is that of the code: every entry is printed just so, and
//! every code is there.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::response::Response;
use countersign::e2e::MAX_DEVICES;
use countersign::gateway::limit::{RateClass, RateLimit};
use countersign::gateway::log::LOG_NUMBER;
use countersign::http::api::error::{HttpRefusal, TransportError, add_headers};
use countersign::protocol::device::{MAX_DEVICE_INVITATIONS, MAX_INTRODUCTIONS, MAX_STATEMENTS};
use countersign::protocol::error::{Code, DeviceError, Error, NotificationError, ThrottleDetails};
use countersign::protocol::json;
use countersign::protocol::notification::MAX_NOTIFICATIONS;
use countersign::protocol::reader::InvalidMember;
use serde_json::{Value, json};

use super::team_errors::team_errors;

fn source() -> Value {
    serde_saphyr::from_str(include_str!("../../src/http/api/openapi/openapi.yaml")).expect("YAML")
}

fn unsupported(pointer: &str, offered: &'static str) -> Error {
    Error::Invalid(InvalidMember::unsupported(pointer, offered))
}

fn unreadable(body: &[u8]) -> Error {
    json::parse(body).map_or_else(Error::Json, |_| panic!("JSON"))
}

fn forbidden(pointer: Option<&str>, expected: &'static str) -> Error {
    Error::Forbidden {
        pointer: pointer.map(str::to_owned),
        expected,
    }
}

fn parameter(name: &'static str, expected: &'static str) -> Error {
    Error::Parameter { name, expected }
}

fn too_large(pointer: &'static str, limit: usize) -> Error {
    Error::PayloadTooLarge { pointer, limit }
}

/// The values of the catalogue's placeholders.
const VALUES: [(&str, &str); 11] = [
    ("role", "an enforcer"),
    ("rate", "submissions"),
    ("pointer", "/here"),
    ("parameter", "approverId"),
    ("state", "decided"),
    ("body_bytes", "1"),
    ("limits.artifact_bytes", "2"),
    ("limits.prompt_bytes", "3"),
    ("limits.snapshot_bytes", "4"),
    ("limits.approvers_per_exchange", "5"),
    ("pending_share", "6"),
];

/// The error that each entry describes.
fn errors() -> Vec<(&'static str, HttpRefusal)> {
    let transport = [
        ("foreignOrigin", TransportError::ForeignOrigin),
        (
            "unencrypted",
            TransportError::Unencrypted {
                expected: "X-Forwarded-Proto: https from the proxy",
            },
        ),
        ("noSuchRoute", TransportError::NoSuchRoute),
        ("methodNotAllowed", TransportError::MethodNotAllowed),
        ("unsupportedMediaType", TransportError::UnsupportedMediaType),
    ];
    let transport = transport.map(|(name, error)| (name, HttpRefusal::from(error)));
    let own = rules()
        .into_iter()
        .chain(team_errors())
        .map(|(name, error)| (name, HttpRefusal::from(error)));
    own.chain(transport).collect()
}

fn rules() -> Vec<(&'static str, Error)> {
    let own = "an id that this credential may act as";
    let id = "1 to 128 characters without control characters and bidirectional controls";
    let time = InvalidMember::timestamp("/createdAt", "an RFC 3339 date-time");
    let key = "one key of 1 to 255 visible ASCII characters";
    let (rate, second) = (
        RateLimit {
            per_second: 1,
            burst: 1,
        },
        Duration::from_secs(1),
    );
    vec![
        (
            "invalid",
            Error::invalid("/member", "what this member should be"),
        ),
        ("malformedJson", unreadable(b"{]")),
        ("notCanonical", unreadable(br#"{"a":1,"a":2}"#)),
        ("timestamp", Error::Invalid(time)),
        (
            "unsupportedSignature",
            unsupported("/body/sigAlg", "Ed25519"),
        ),
        ("unsupportedHash", unsupported("/here", "SHA-256")),
        ("unsupportedStatement", unsupported("/statement/v", "1")),
        (
            "invalidQuery",
            parameter("query", "each parameter once, percent-encoded"),
        ),
        ("invalidId", parameter("approverId", id)),
        ("invalidLogNumber", parameter("approverId", LOG_NUMBER)),
        ("invalidKeyId", parameter("signerKeyId", id)),
        (
            "invalidDeviceId",
            parameter("deviceId", "22 characters of base64url"),
        ),
        ("invalidAfter", parameter("after", "the number of a state")),
        ("invalidIdempotencyKey", parameter("Idempotency-Key", key)),
        ("decisionExpired", Error::DecisionExpired),
        ("decisionHash", Error::DecisionHash),
        ("unauthenticated", Error::Unauthenticated),
        ("noCertificate", Error::NoCertificate),
        ("codeRefused", Error::CodeRefused),
        ("forbidden", forbidden(None, "an enforcer")),
        ("otherId", forbidden(Some("/here"), own)),
        ("otherIdParameter", forbidden(Some("approverId"), own)),
        ("openRefused", Error::OpenRefused),
        (
            "notPaired",
            Error::NotPaired {
                pointer: "/recipient/approverId",
            },
        ),
        ("pairingRevoked", Error::PairingRevoked),
        ("compactRefused", Error::CompactRefused),
        ("signatureInvalid", Error::SignatureInvalid),
        (
            "keyProof",
            Error::KeyProof {
                text: "text".to_owned(),
            },
        ),
        ("keyRevoked", Error::KeyRevoked),
        (
            "keyOfOwnDevice",
            forbidden(
                Some("signerKeyId"),
                "a statement of a device that revokes this one, or an administrator",
            ),
        ),
        (
            "unboundCredential",
            forbidden(
                Some("approverId"),
                "a credential that is bound to this approver, or an administrator",
            ),
        ),
        (
            "endingCredential",
            forbidden(
                None,
                "an API key without an end: people who sign in do so on the new device too",
            ),
        ),
        ("unknownSigner", DeviceError::UnknownSigner.into()),
        ("revokedSigner", DeviceError::RevokedSigner.into()),
        ("statementSignature", DeviceError::Signature.into()),
        ("possession", DeviceError::Possession.into()),
        ("deviceRevoked", DeviceError::Revoked.into()),
        ("notFirstDevice", DeviceError::NotFirst.into()),
        ("deviceTaken", DeviceError::Taken.into()),
        ("keyOfDevice", DeviceError::KeyOfDevice.into()),
        ("notPairedEnforcer", DeviceError::NotPaired.into()),
        (
            "notificationsOff",
            NotificationError::Off {
                reason: "notifications.enabled is false",
            }
            .into(),
        ),
        (
            "notifiedAddress",
            NotificationError::Address { pointer: "/url" }.into(),
        ),
        ("notifiedDevice", NotificationError::NoDevice.into()),
        (
            "tooManyNotifications",
            NotificationError::TooMany {
                limit: MAX_NOTIFICATIONS,
            }
            .into(),
        ),
        ("staleNotification", NotificationError::Stale.into()),
        (
            "tooManyInvitations",
            DeviceError::TooManyInvitations {
                limit: MAX_DEVICE_INVITATIONS,
            }
            .into(),
        ),
        (
            "tooManyIntroductions",
            DeviceError::TooManyIntroductions {
                limit: MAX_INTRODUCTIONS,
            }
            .into(),
        ),
        (
            "tooManyDevices",
            DeviceError::TooMany { limit: MAX_DEVICES }.into(),
        ),
        (
            "tooManyStatements",
            DeviceError::ListFull {
                limit: MAX_STATEMENTS,
            }
            .into(),
        ),
        ("notFound", Error::NotFound),
        ("alreadyExists", Error::AlreadyExists),
        ("promptExists", Error::PromptExists),
        ("sessionStarted", Error::SessionStarted),
        ("taken", Error::Taken { pointer: "/here" }),
        ("certificateBound", Error::CertificateBound),
        ("invitationUsed", Error::InvitationUsed),
        ("idempotencyKeyReused", Error::IdempotencyKeyReused),
        ("alreadyDecided", Error::AlreadyDecided),
        ("nonceReused", Error::NonceReused),
        ("expired", Error::Expired),
        ("invalidState", Error::InvalidState("decided")),
        ("alreadyPaired", Error::AlreadyPaired),
        ("promptMismatch", Error::PromptMismatch),
        ("promptSettled", Error::PromptSettled("delivered")),
        ("sessionClosed", Error::SessionClosed),
        ("snapshotExists", Error::SnapshotExists),
        ("bodyTooLarge", Error::BodyTooLarge { limit: 1 }),
        ("artifactTooLarge", too_large("/body/ciphertext/data", 2)),
        ("promptTooLarge", too_large("/body/text", 3)),
        ("snapshotTooLarge", too_large("/body/payload", 4)),
        (
            "invalidArtifact",
            Error::InvalidArtifact(InvalidMember::shape("/body/repoRef", "a string")),
        ),
        (
            "noRequestId",
            Error::InvalidArtifact(InvalidMember::shape(
                "/body/requestId",
                "a string (required)",
            )),
        ),
        ("artifactHash", Error::ArtifactHash),
        ("promptHash", Error::PromptHash),
        ("snapshotHash", Error::SnapshotHash),
        ("artifactExpired", Error::ArtifactExpired),
        (
            "promptExpired",
            Error::PromptExpired {
                pointer: "/expiresAt".to_owned(),
            },
        ),
        (
            "noApprover",
            Error::NoApprover {
                pointer: "/recipient/approverId",
            },
        ),
        (
            "tooManyApprovers",
            Error::TooManyApprovers {
                pointer: "/recipient/approverId",
                count: 5_000,
                limit: 5,
            },
        ),
        ("noRecipient", Error::NoRecipient),
        ("throttled", RateClass::Submission.throttled(rate, second)),
        (
            "tooManyGuesses",
            Error::Throttled(ThrottleDetails {
                policy: "guesses",
                calls: "wrong codes".to_owned(),
                quota: 1,
                window_seconds: 60,
                retry_after: second,
            }),
        ),
        ("inboxFull", Error::InboxFull),
        ("inboxShare", Error::InboxShare { limit: 6 }),
        ("tooManyRevocations", Error::TooManyRevocations),
        ("tooManyWaits", Error::TooManyWaits),
        ("internal", Error::Internal),
        ("unavailable", Error::Unavailable),
        ("tooManyChannels", Error::TooManyChannels),
    ]
}

/// An error as the catalogue has it.
fn entry(refusal: &HttpRefusal) -> Value {
    let described = &refusal.description;
    let mut response = Response::default();
    add_headers(described, &mut response, false);
    let mut headers: Vec<_> = response.headers().keys().map(ToString::to_string).collect();
    // The router adds it.
    if described.status == 405 {
        headers.push("allow".to_owned());
    }
    headers.sort_unstable();
    json!({
        "status": described.status, "code": described.code.as_str(), "message": described.message,
        "details": described.details, "headers": headers, "retryable": described.code.retryable(),
    })
}

#[test]
fn every_entry_of_the_catalogue_is_an_error_as_the_gateway_prints_it() {
    let source = source();
    let all = source["x-errors"].as_object().unwrap();
    let entries: BTreeSet<_> = all
        .iter()
        .filter(|(_, entry)| entry.is_object())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(entries, errors().iter().map(|(name, _)| *name).collect());
    let mut codes = BTreeSet::new();
    for (name, error) in errors() {
        let mut text = all[name].to_string();
        for (placeholder, value) in VALUES {
            // A limit is a number where it stands alone.
            if value.parse::<u32>().is_ok() {
                text = text.replace(&format!("\"{{{{{placeholder}}}}}\""), value);
            }
            text = text.replace(&format!("{{{{{placeholder}}}}}"), value);
        }
        let mut described: Value = serde_json::from_str(&text).unwrap();
        let members = described.as_object_mut().unwrap();
        members.remove("x-if");
        members.entry("details").or_insert_with(|| json!({}));
        members.entry("retryable").or_insert(json!(false));
        let headers = members.entry("headers").or_insert_with(|| json!([]));
        let headers = headers.as_array_mut().unwrap();
        for header in headers.iter_mut() {
            *header = header.as_str().unwrap().to_lowercase().into();
        }
        headers.sort_by_key(ToString::to_string);
        assert_eq!(described, entry(&error), "{name}");
        codes.insert(described["code"].as_str().unwrap().to_owned());
    }
    let known: BTreeSet<_> = Code::ALL
        .iter()
        .map(|code| code.as_str().to_owned())
        .collect();
    assert_eq!(codes, known, "every code is documented");
}

/// The names that a list of errors holds.
fn names<'v>(listed: &'v Value, found: &mut Vec<&'v str>) {
    match listed {
        Value::String(name) => found.push(name),
        Value::Array(all) => all.iter().for_each(|one| names(one, found)),
        Value::Object(with_values) => found.extend(with_values.keys().map(String::as_str)),
        _ => panic!("{listed}"),
    }
}

#[test]
fn operations_list_only_errors_of_the_catalogue_and_use_all_of_them() {
    let source = source();
    let all = source["x-errors"].as_object().unwrap();
    let mut used = vec!["methodNotAllowed"];
    for group in all.values().filter(|entry| entry.is_array()) {
        names(group, &mut used);
    }
    for operation in source["paths"].as_object().unwrap().values() {
        for operation in operation.as_object().unwrap().values() {
            let mut own = Vec::new();
            names(&operation["x-errors"], &mut own);
            let once: BTreeSet<_> = own.iter().collect();
            assert_eq!(once.len(), own.len(), "{}", operation["operationId"]);
            used.extend(own);
        }
    }
    let used: BTreeSet<_> = used.into_iter().collect();
    assert_eq!(used, all.keys().map(String::as_str).collect());
}
