//! The profile compat: the older dialect works for its credentials, and everything that it must not
//! open stays closed, for them and for all others.

mod headers;
mod messages;
mod pairing;
mod profile;

use countersign::store::identity::credential::RoleName;
use serde_json::Value;

use crate::support::{Answer, Approver, Cluster, Enforcer};

/// An enforcer whose credential has the profile compat.
async fn compat_enforcer(cluster: &Cluster, id: &str) -> Enforcer {
    let key = cluster.compat_key(&cluster.tenant, RoleName::Enforcer, Some(id));
    Enforcer {
        client: cluster.client(Some(&key.await)),
        id: id.to_owned(),
    }
}

/// An approver whose credential has the profile compat.
async fn compat_approver(cluster: &Cluster, id: &str) -> Approver {
    let key = cluster.compat_key(&cluster.tenant, RoleName::Approver, Some(id));
    Approver {
        client: cluster.client(Some(&key.await)),
        id: id.to_owned(),
    }
}

/// The two parts of an API key.
fn parts(key: &str) -> (&str, &str) {
    key.strip_prefix("csk_").unwrap().split_once('_').unwrap()
}

/// Asserts a refusal in the dialect, framed as an Envelope or as plain JSON.
#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    let json = answer.json();
    let said = if json["msgType"] == "error" {
        &json["body"]["code"]
    } else {
        &json["error"]
    };
    assert_eq!(
        (answer.status, said),
        (status, &Value::from(code)),
        "{answer:?}"
    );
}
