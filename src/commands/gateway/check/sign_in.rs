//! Whether approvers can sign in: what the provider says about itself, and whether the page may
//! call it.

use countersign::config::Oidc;
use serde_json::Value;

use super::fetch::fetch;
use crate::commands::findings::FindingReport;

const CHECK: &str = "sign-in";

pub async fn check(oidc: &Oidc, report: &mut FindingReport) {
    let issuer = &oidc.issuer;
    let base = issuer.strip_suffix('/').unwrap_or(issuer);
    let document = match fetch(&format!("{base}/.well-known/openid-configuration")).await {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        // A node starts without it.
        Err(error) => {
            let remedy = "nobody can sign in until it can be read; check page.oidc.issuer";
            return report.warn(CHECK, error, remedy);
        }
    };
    if document["issuer"] != issuer.as_str() {
        let message = format!("the provider calls itself {}", document["issuer"]);
        return report.fail(CHECK, message, "set page.oidc.issuer to exactly this");
    }
    for endpoint in ["authorization_endpoint", "token_endpoint"] {
        if !document[endpoint].is_string() {
            let message = format!("the provider names no {endpoint}");
            return report.fail(CHECK, message, "check page.oidc.issuer");
        }
    }
    for endpoint in ["token_endpoint", "revocation_endpoint"] {
        let url = document[endpoint].as_str();
        if let Some(url) = url.filter(|url| !oidc.may_call(url)) {
            let message = format!("the page may not call {endpoint}, {url}");
            return report.fail(CHECK, message, "add its origin to page.oidc.origins");
        }
    }
    report.ok(CHECK, "the provider answers, and the page may call it");
}
