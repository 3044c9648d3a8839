//! API keys in `X-PAT`, `X-Client-Id` and `X-Client-Secret`.

use countersign::store::identity::credential::RoleName;
use reqwest::Method;

use super::{compat_enforcer, parts};
use crate::support::cluster::OPERATOR_KEY;
use crate::support::{Answer, Cluster};

const WHOAMI: &str = "/v1/whoami";

/// The answer to a call with these headers and nothing else.
async fn asked(cluster: &Cluster, headers: &[(&str, &str)]) -> Answer {
    let nobody = cluster.client(None);
    let call = nobody.call(Method::GET, WHOAMI);
    let call = headers
        .iter()
        .fold(call, |call, (name, value)| call.header(name, value));
    call.send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_profile_works_whole_and_in_two_parts() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let (id, secret) = parts(bot.client.key());
    let bearer = format!("Bearer {}", bot.client.key());
    let other = cluster.approver("alice").await;
    let others = format!("Bearer {}", other.client.key());
    for headers in [
        vec![("x-pat", bot.client.key())],
        vec![("x-client-id", id), ("x-client-secret", secret)],
        // Beside a token of the same tenant, whoever's it is.
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("authorization", &bearer),
        ],
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("authorization", &others),
        ],
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("x-pat", bot.client.key()),
        ],
        // It comes before all others.
        vec![
            ("x-pat", bot.client.key()),
            ("authorization", "Bearer nonsense"),
        ],
        vec![("x-pat", bot.client.key()), ("authorization", &others)],
    ] {
        let answer = asked(&cluster, &headers).await.expect(200);
        assert_eq!(answer.json()["boundId"], "build-bot", "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_without_its_secret_and_a_bad_key_beside_a_good_one_are_refused() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let (id, secret) = parts(bot.client.key());
    let good = format!("Bearer {}", bot.client.key());
    let tenant = cluster.administration.create_tenant("other").await.unwrap();
    let stranger = cluster.compat_key(&tenant, RoleName::Enforcer, Some("build-bot"));
    let stranger = stranger.await;
    let strangers = format!("Bearer {stranger}");
    let operator = format!("Bearer {OPERATOR_KEY}");
    let wrong = "x".repeat(secret.len());
    for headers in [
        vec![("x-client-id", id)],
        vec![("x-client-secret", secret)],
        vec![("x-client-id", id), ("x-client-secret", "")],
        vec![("x-client-id", id), ("x-client-secret", &wrong)],
        vec![("x-client-id", id), ("authorization", &good)],
        vec![("x-client-secret", secret), ("authorization", &good)],
        vec![
            ("x-client-id", id),
            ("x-client-secret", &wrong),
            ("authorization", &good),
        ],
        // Both must be valid, and of one tenant.
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("authorization", "Bearer nonsense"),
        ],
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("authorization", "nonsense"),
        ],
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("authorization", &strangers),
        ],
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("authorization", &operator),
        ],
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("x-pat", &stranger),
        ],
        vec![
            ("x-client-id", id),
            ("x-client-secret", secret),
            ("x-api-key", "csk_a_b"),
        ],
        // A bad key is not made good by another.
        vec![("x-pat", "nonsense"), ("authorization", &good)],
        vec![("x-pat", ""), ("authorization", &good)],
        vec![("x-pat", "csk_a_b"), ("x-api-key", bot.client.key())],
        vec![("x-pat", OPERATOR_KEY)],
        vec![
            ("x-pat", "nonsense"),
            ("x-client-id", id),
            ("x-client-secret", secret),
        ],
    ] {
        let answer = asked(&cluster, &headers).await;
        assert_eq!(answer.status, 401, "{headers:?} {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_keys_do_not_work_in_these_headers_and_work_elsewhere_as_before() {
    let cluster = Cluster::start(1).await;
    let strict = cluster.enforcer("build-bot").await;
    let admin = cluster.admin().await;
    for key in [strict.client.key(), admin.key()] {
        let (id, secret) = parts(key);
        asked(&cluster, &[("x-pat", key)])
            .await
            .refused(401, "UNAUTHENTICATED");
        let both = [("x-client-id", id), ("x-client-secret", secret)];
        asked(&cluster, &both).await.refused(401, "UNAUTHENTICATED");
        asked(&cluster, &[("x-api-key", key)]).await.expect(200);
    }
}
