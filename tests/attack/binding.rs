//! Acting as somebody else: with a credential or token that names nobody, or with a key that is
//! somebody else's.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use ed25519_dalek::Signer as _;
use serde_json::{Value, json};

use crate::support::process::{countersign, run};
use crate::support::{
    Cluster, Contract, public_key, registration, request_id, sealed, signed, signing_key, with,
    without,
};
use crate::tokens::issuer::{IssuerKey, active};
use crate::tokens::provider::{Provider, Says};
use crate::tokens::{alice, by_introspection, by_jwt, not_taken, try_token};

const CREDENTIALS: &str = "/platform/v1/credentials";
const KEY: &str = "/platform/v1/approvers/alice/keys/laptop";

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_names_nobody_is_not_made_by_omission() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    for role in ["enforcer", "approver"] {
        let refused = admin.post(CREDENTIALS, &json!({ "role": role })).await;
        let refused = refused.refused_at(400, "VALIDATION", "/boundId");
        let expected = refused.detail("expected");
        let expected = expected.as_str().unwrap();
        assert!(expected.contains("unbound: true"), "{expected}");
        let create = ["credential", "create", "--tenant", cluster.tenant.as_str()];
        let (ok, text) = run(countersign()
            .args(["--database-url", &cluster.database.url])
            .args(create)
            .args(["--role", role]));
        assert!(!ok, "{text}");
        for option in ["--bound-id", "--unbound"] {
            assert!(text.contains(option), "{text}");
        }
        let wanted = json!({ "role": role, "unbound": true });
        admin.post(CREDENTIALS, &wanted).await.expect(201);
    }
    let made = "select count(*) from credentials where role <> 'admin'";
    assert_eq!(cluster.database.number(made).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_an_earlier_version_still_act_as_anybody_and_check_names_them() {
    let cluster = Cluster::start(1).await;
    let alice = cluster.approver("alice").await;
    let id = alice.client.key().split('_').nth(1).unwrap().to_owned();
    // As such a version left it.
    let unbind = format!("update credentials set bound_id = null where credential_id = '{id}'");
    cluster.database.run(&unbind).await;
    let check = || {
        run(countersign()
            .args(["--database-url", &cluster.database.url])
            .arg("check"))
    };
    let (ok, text) = check();
    assert!(ok && text.contains(&id), "{text}");
    alice
        .client
        .get("/v1/approvers/bob/inbox")
        .await
        .expect(200);
    let admin = cluster.admin().await;
    admin
        .delete(&format!("{CREDENTIALS}/{id}"))
        .await
        .expect(204);
    let (ok, text) = check();
    assert!(ok && !text.contains(&id), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_id_claim_is_missing_or_misspelt_acts_as_nobody() {
    let key = IssuerKey::new("k1", "EdDSA");
    let provider = Provider::start(&[&key]).await;
    let strict = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        by_introspection(config, &provider);
    })
    .await;
    let lenient = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        by_introspection(config, &provider);
        config.auth.jwt_allow_unbound = true;
        config.auth.introspection_allow_unbound = true;
    })
    .await;
    for (cluster, accepted) in [(&strict, false), (&lenient, true)] {
        let missing = without(&alice(cluster), "/countersign_id");
        let misspelt = with(&missing, "/countersignId", json!("alice"));
        for (number, claims) in [missing, misspelt].into_iter().enumerate() {
            let said = active(cluster.tenant.as_str(), "approver", "alice");
            let said = without(&said, "/countersign_id");
            let opaque = format!("opaque-{number}-{}", cluster.tenant);
            provider.know(&opaque, Says::Json(said));
            for token in [key.sign(&claims), opaque] {
                let client = cluster.client(Some(&token));
                for path in ["/v1/approvers/alice/inbox", "/v1/approvers/bob/inbox"] {
                    let answer = client.get(path).await;
                    if accepted {
                        answer.expect(200);
                    } else {
                        not_taken(answer, "nobody's token");
                    }
                }
            }
        }
        try_token(cluster, &key.sign(&alice(cluster)))
            .await
            .expect(200);
    }
    // An administrator acts as nobody, and needs no id.
    let admin = with(&alice(&strict), "/role", json!("admin"));
    let admin = key.sign(&without(&admin, "/countersign_id"));
    let admin = strict.client(Some(&admin));
    admin.get(CREDENTIALS).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_for_any_approver_registers_nobodys_first_key() {
    let cluster = Cluster::start(1).await;
    let any = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let any = cluster.client(Some(&any));
    let own = registration(&cluster.tenant, "alice", "laptop", &signing_key(1));
    let refused = any.put(KEY, &own).await.refused(403, "FORBIDDEN");
    assert_eq!(refused.detail("parameter"), "approverId");
    let keys = "select count(*) from signing_keys";
    assert_eq!(cluster.database.number(keys).await, 0);
    // The one whose key it is may, and so may an administrator for another.
    let alice = cluster.approver("alice").await.client;
    alice.put(KEY, &own).await.expect(200);
    let admin = cluster.admin().await;
    let imported = json!({ "publicKey": public_key(&signing_key(2)) });
    let bobs = "/platform/v1/approvers/bob/keys/laptop";
    admin.put(bobs, &imported).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_registers_a_key_without_holding_it() {
    let cluster = Cluster::start(1).await;
    let alice = cluster.approver("alice").await.client;
    let contract = Contract::of(&alice).await;
    let put = async |body: &Value| {
        let method = reqwest::Method::PUT;
        contract.call(&alice, method, KEY, Some(body)).await
    };
    let good = registration(&cluster.tenant, "alice", "laptop", &signing_key(1));
    let bobs = public_key(&signing_key(2));
    let bare = put(&without(&good, "/proof")).await;
    bare.refused_at(400, "VALIDATION", "/proof");

    // Bob's key, with what alice can make up, or has seen of him.
    let tenant = &cluster.tenant;
    let elsewhere = cluster.administration.create_tenant("other").await.unwrap();
    let stolen = [
        with(&good, "/publicKey", json!(bobs)),
        registration(tenant, "bob", "laptop", &signing_key(2)),
        registration(tenant, "alice", "phone", &signing_key(2)),
        registration(&elsewhere, "alice", "laptop", &signing_key(2)),
        with(&good, "/proof/nonce", json!(request_id())),
        with(&good, "/proof/createdAt", json!(crate::support::in_time(1))),
    ];
    for body in &stolen {
        let refused = put(body).await;
        let refused = refused.refused_at(403, "SIGNATURE_INVALID", "/proof/signature");
        let expected = refused.detail("expected");
        let expected = expected.as_str().unwrap();
        let start = format!("countersign-key-registration-v1\\n{tenant}\\nalice\\nlaptop\\n");
        assert!(
            expected.contains(&start),
            "it says what to sign: {expected}"
        );
    }
    // A signature over a decision is no proof either.
    let decision = signed(json!({ "nonce": "n" }), &signing_key(2));
    let other = with(&good, "/proof/signature", decision["signature"].clone());
    let other = put(&other).await;
    other.refused_at(403, "SIGNATURE_INVALID", "/proof/signature");

    // A proof is fresh, and its nonce counts once.
    for ahead in [-400, 400] {
        let mut stale = good.clone();
        stale["proof"]["createdAt"] = json!(crate::support::in_time(ahead));
        let stale = put(&stale).await;
        stale.refused_at(400, "TIMESTAMP", "/proof/createdAt");
    }
    for nonce in [
        "short",
        "sixteen or more\nwith a line feed",
        &"x".repeat(129),
    ] {
        let odd = put(&with(&good, "/proof/nonce", json!(nonce))).await;
        odd.refused_at(400, "VALIDATION", "/proof/nonce");
    }
    let keys = "select count(*) from signing_keys";
    assert_eq!(cluster.database.number(keys).await, 0);
    put(&good).await.expect(200);
    put(&good).await.expect(200);
    let admin = cluster.admin().await;
    let second = "/platform/v1/approvers/alice/keys/phone";
    let again = proof_with_nonce(&cluster, &good);
    let again = admin.put(second, &again).await;
    again.refused_at(409, "ALREADY_EXISTS", "/proof/nonce");
    cluster.pass(Duration::from_secs(600));
    put(&good).await.refused(400, "TIMESTAMP");
}

/// A good proof for another key, with the nonce of the first.
fn proof_with_nonce(cluster: &Cluster, first: &Value) -> Value {
    let mut body = registration(&cluster.tenant, "alice", "phone", &signing_key(3));
    let nonce = first["proof"]["nonce"].as_str().unwrap();
    let at = body["proof"]["createdAt"].as_str().unwrap();
    let key = public_key(&signing_key(3));
    let text = format!(
        "countersign-key-registration-v1\n{}\nalice\nphone\n{key}\n{nonce}\n{at}",
        cluster.tenant
    );
    let signature = signing_key(3).sign(text.as_bytes()).to_bytes();
    let signature =
        base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, signature);
    body["proof"]["signature"] = json!(signature);
    body["proof"]["nonce"] = json!(nonce);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_registered_by_another_decides_nothing() {
    // The purpose of the attack: a decision in somebody's name that verifies.
    let cluster = Cluster::start(1).await;
    let any = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let any = cluster.client(Some(&any));
    let own = registration(&cluster.tenant, "alice", "key-1", &signing_key(9));
    let path = "/platform/v1/approvers/alice/keys/key-1";
    any.put(path, &own).await.refused(403, "FORBIDDEN");
    let alice = cluster.approver("alice").await;
    let hers = registration(&cluster.tenant, "alice", "key-1", &signing_key(1));
    alice.client.put(path, &hers).await.expect(200);
    let bot = cluster.enforcer("build-bot").await;
    let request = request_id();
    bot.submit(&request, "alice", sealed()).await.expect(202);
    let forged = signed(crate::support::compact("approve"), &signing_key(9));
    let forged = alice.decision(&request, forged);
    let forged = any.post("/v1/decisions", &forged).await;
    forged.refused(403, "SIGNATURE_INVALID");
}
