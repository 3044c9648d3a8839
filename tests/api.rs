//! The documents about the API tell the truth: they hold every route, their examples work, and a
//! node answers as they say.

mod errors;
mod examples;
mod generated;
mod making;
mod messages;
mod page;
mod team_errors;
mod whole;
mod words;

use reqwest::Method;
use serde_json::{Value, json};

use crate::access::routes::{ROUTES, Role};
use crate::support::{Client, Cluster, Contract};

/// A client for each role, bound to no id; and one for nobody.
struct Everyone {
    enforcer: Client,
    approver: Client,
    admin: Client,
    operator: Client,
    nobody: Client,
}

impl Everyone {
    async fn of(cluster: &Cluster) -> Self {
        use countersign::store::identity::credential::RoleName;
        let key = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
        Self {
            enforcer: cluster.any_enforcer().await,
            approver: cluster.client(Some(&key)),
            admin: cluster.admin().await,
            operator: cluster.operator(),
            nobody: cluster.client(None),
        }
    }

    fn all(&self) -> [&Client; 5] {
        [
            &self.enforcer,
            &self.approver,
            &self.admin,
            &self.operator,
            &self.nobody,
        ]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_holds_every_route_and_no_other() {
    let cluster = Cluster::start(1).await;
    let contract = Contract::of(&cluster.client(None)).await;
    let mut documented: Vec<_> = contract
        .operations()
        .iter()
        .map(|one| format!("{} {}", one.method, one.path))
        .collect();
    let mut routed: Vec<_> = ROUTES
        .iter()
        .map(|route| format!("{} {}", route.method, route.path.split('?').next().unwrap()))
        .collect();
    let mut handled: Vec<_> = countersign::http::routes()
        .into_iter()
        .map(|(method, path)| format!("{} {path}", method.to_uppercase()))
        .collect();
    documented.sort_unstable();
    routed.sort_unstable();
    handled.sort_unstable();
    assert_eq!(documented, routed);
    assert_eq!(documented, handled);
    let usual = &contract.document["security"];
    assert!(!usual.as_array().unwrap().is_empty());
    for route in ROUTES {
        let path = route.path.split('?').next().unwrap();
        let operation = &contract.document["paths"][path][route.method.to_lowercase()];
        let security = operation.get("security").unwrap_or(usual);
        let open = security.as_array().unwrap().is_empty();
        assert_eq!(open, route.roles.is_empty(), "{path}");
        let summary = operation["summary"].as_str().unwrap();
        assert!(!summary.is_empty() && !summary.ends_with('.'), "{summary}");
    }
    let mut names: Vec<_> = contract
        .operations()
        .iter()
        .map(|one| one.id().to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), documented.len(), "each has a name of its own");
}

/// Every `$ref` in a document.
fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members
                .values()
                .for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_whole_in_itself() {
    let cluster = Cluster::start(1).await;
    let contract = Contract::of(&cluster.client(None)).await;
    assert_eq!(contract.document["openapi"], "3.1.0");
    assert_eq!(contract.messages["asyncapi"], "3.0.0");
    for document in [&contract.document, &contract.messages] {
        let mut found = Vec::new();
        references(document, &mut found);
        assert!(found.len() > 200, "{}", found.len());
        for reference in found {
            let there = document.pointer(reference.trim_start_matches('#'));
            assert!(there.is_some(), "{reference}");
        }
        // Nothing is left of what only the source may hold.
        let text = document.to_string();
        for left in [
            "{{",
            "x-if",
            "x-errors",
            "x-role",
            "x-examples",
            "unevaluated",
        ] {
            assert!(!text.contains(left), "{left}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_follows_the_configuration() {
    let cluster = Cluster::with(1, |config| {
        config.protocol.name = "acme".into();
        config.auth.basic = true;
        config.artifacts.open = false;
        config.idempotency.required = true;
        config.limits.page_max = 7;
        config.limits.page_default = 3;
        config.limits.artifact_bytes = 1_000;
    })
    .await;
    let nobody = cluster.client(None);
    let contract = Contract::of(&nobody).await;
    let submit = &contract.document["paths"]["/v1/artifacts"]["post"];
    assert!(submit["responses"]["202"]["content"]["application/acme+json"].is_object());
    assert!(submit["requestBody"]["content"]["application/acme+json"].is_object());
    let key = contract.resolve(&submit["parameters"][0]);
    assert_eq!(key["name"], "Idempotency-Key");
    assert_eq!(key["required"], true);
    let components = &contract.document["components"];
    assert!(components["schemas"]["OpenArtifact"].is_null());
    let sealed = &components["schemas"]["SealedArtifact"]["properties"]["ciphertext"];
    let sealed = contract.resolve(sealed);
    assert_eq!(sealed["properties"]["data"]["maxLength"], 1_000);
    assert_eq!(components["securitySchemes"]["basic"]["scheme"], "basic");
    let text = contract.document.to_string();
    assert!(text.contains("ACME_ERR_POLICY_DENY"));
    assert!(text.contains("More than 7 counts as 7."));
    let messages = &contract.messages["components"];
    assert_eq!(messages["schemas"], components["schemas"]);
    assert_eq!(messages["securitySchemes"]["basic"]["scheme"], "basic");
    let messages = contract.messages.to_string();
    assert!(messages.contains("ACME_ERR_ALREADY_DECIDED"));
    for text in [text, messages] {
        assert!(!text.contains("PROTO_ERR_") && !text.contains("proto+json"));
    }

    // And what it says is so.
    let everyone = Everyone::of(&cluster).await;
    let open = crate::support::open(&crate::support::request_id());
    let sent = json!({
        "msgType": "artifact.submit", "requestId": open["requestId"], "createdAt": crate::support::now(),
        "sender": { "enforcerId": "e" }, "recipient": { "approverId": "a" }, "body": open,
    });
    let call = everyone.enforcer.call(Method::POST, "/v1/artifacts");
    let refused = call.header("idempotency-key", "k").json(&sent).send().await;
    assert_eq!(refused.status, 403, "{refused:?}");
    contract
        .check(&Method::POST, "/v1/artifacts", &refused)
        .unwrap();
    for client in everyone.all() {
        let answer = client.call(Method::POST, "/v1/artifacts").send().await;
        contract
            .check(&Method::POST, "/v1/artifacts", &answer)
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_stay_good_as_time_passes() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    let expiry = async || {
        let contract = Contract::of(&nobody).await;
        let body = &contract.document["paths"]["/v1/artifacts"]["post"]["requestBody"];
        body["content"]["application/json"]["examples"]["1-sealed"]["value"]["body"]["expiresAt"]
            .clone()
    };
    let first = expiry().await;
    assert_eq!(first, expiry().await);
    cluster.pass(std::time::Duration::from_secs(3 * 3_600));
    assert_ne!(first, expiry().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused_as_documented() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    let contract = Contract::of(&nobody).await;
    for (path, name) in [
        ("/v1/artifacts", "envelope.405.METHOD_NOT_ALLOWED"),
        ("/v1/artifact", "plain.405.METHOD_NOT_ALLOWED"),
    ] {
        let answer = nobody.call(Method::PATCH, path).send().await.expect(405);
        let response = &contract.document["components"]["responses"][name];
        assert_eq!(contract.faults_of(response, &answer), None);
        assert!(answer.header("allow").is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_of_other_roles_are_told_who_may_call_as_documented() {
    let cluster = Cluster::start(1).await;
    let everyone = Everyone::of(&cluster).await;
    let contract = Contract::of(&everyone.nobody).await;
    let roles = [
        (Role::Enforcer, &everyone.enforcer),
        (Role::Approver, &everyone.approver),
        (Role::Admin, &everyone.admin),
        (Role::Operator, &everyone.operator),
    ];
    let mut refused = 0;
    for route in ROUTES.iter().filter(|route| !route.roles.is_empty()) {
        let template = route.path.split('?').next().unwrap();
        let operation = &contract.document["paths"][template][route.method.to_lowercase()];
        let forbidden = contract.resolve(&operation["responses"]["403"]);
        let media = forbidden["content"].as_object().unwrap().values().next();
        let example = &media.unwrap()["examples"]["forbidden"]["value"];
        let example = example.get("body").unwrap_or(example);
        for (_, client) in roles.iter().filter(|(role, _)| !route.roles.contains(role)) {
            let call = client.call(route.method(), &route.path_for("r"));
            let answer = call.send().await.refused(403, "FORBIDDEN").json();
            let answer = answer.get("body").unwrap_or(&answer);
            assert_eq!(answer["message"], example["message"], "{template}");
            assert_eq!(answer["details"], example["details"], "{template}");
            refused += 1;
        }
    }
    assert!(refused > 80, "{refused}");
}
