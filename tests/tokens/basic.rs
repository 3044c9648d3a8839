//! `Authorization: Basic`: off unless it is turned on, and then an API key in two halves.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use countersign::store::identity::credential::RoleName;
use reqwest::Method;

use super::INBOX;
use crate::support::cluster::OPERATOR_KEY;
use crate::support::{Answer, Cluster};

async fn basic(cluster: &Cluster, value: &str) -> Answer {
    let nobody = cluster.client(None);
    let call = nobody.call(Method::GET, INBOX);
    call.header("authorization", value).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_is_off_by_default() {
    let cluster = Cluster::start(1).await;
    let key = cluster.approver("alice").await.client.key().to_owned();
    let (id, secret) = key.strip_prefix("csk_").unwrap().split_once('_').unwrap();
    for text in [format!("{id}:{secret}"), format!("{id}:{key}")] {
        let value = format!("Basic {}", STANDARD.encode(text));
        let refused = basic(&cluster, &value).await;
        let refused = refused.refused(401, "UNAUTHENTICATED");
        let challenge = refused.header("www-authenticate");
        assert_eq!(challenge, Some("Bearer realm=\"countersign\""));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_takes_a_credential_in_two_halves_and_nothing_else() {
    let cluster = Cluster::with(1, |config| config.auth.basic = true).await;
    let key = cluster.approver("alice").await.client.key().to_owned();
    let (id, secret) = key.strip_prefix("csk_").unwrap().split_once('_').unwrap();
    for good in [
        format!("Basic {}", STANDARD.encode(format!("{id}:{secret}"))),
        format!("Basic {}", STANDARD.encode(format!("{id}:{key}"))),
        format!("basic {}", STANDARD_NO_PAD.encode(format!("{id}:{secret}"))),
        format!("BASIC  {}", STANDARD.encode(format!("{id}:{key}"))),
        format!("Bearer {key}"),
    ] {
        basic(&cluster, &good).await.expect(200);
    }

    let other = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let (other_id, _) = other.strip_prefix("csk_").unwrap().split_once('_').unwrap();
    let encoded = |text: String| format!("Basic {}", STANDARD.encode(text));
    let not_text = STANDARD.encode([0xff, b':', 0xfe]);
    let mut bad = vec![
        "Basic".to_owned(),
        "Basic ".to_owned(),
        "Basic !!!".to_owned(),
        format!("Basic {id}:{secret}"),
        format!("Basic {key}"),
        format!("Basic {not_text}"),
        format!(
            "Basic {}",
            URL_SAFE.encode(format!("{id}:\u{3ff}\u{3ff}?>"))
        ),
        format!("Bearer {}", STANDARD.encode(format!("{id}:{secret}"))),
    ];
    bad.extend(
        [
            String::new(),
            ":".into(),
            id.to_owned(),
            format!("{id}:"),
            format!(":{secret}"),
            format!(":{key}"),
            format!("{id}{secret}"),
            format!("{id}:{secret}x"),
            format!("{id}: {secret}"),
            format!("x{id}:{secret}"),
            format!("{}:{secret}", id.to_uppercase()),
            format!("{id}:{other}"),
            format!("{other_id}:{key}"),
            format!("{other_id}:{secret}"),
            format!("csk_{id}:{secret}"),
            format!("{id}\n:{secret}"),
            format!("{OPERATOR_KEY}:"),
            format!("operator:{OPERATOR_KEY}"),
            format!("{}:{secret}", "x".repeat(200)),
        ]
        .map(encoded),
    );
    for value in &bad {
        let refused = basic(&cluster, value).await;
        assert_eq!(refused.status, 401, "{value}: {refused:?}");
        refused.refused(401, "UNAUTHENTICATED");
    }

    // A revoked one ends here as everywhere.
    let revoked = cluster.admin().await;
    let path = format!("/platform/v1/credentials/{id}");
    revoked.delete(&path).await.expect(204);
    let value = encoded(format!("{id}:{secret}"));
    crate::support::until(
        "it is revoked",
        std::time::Duration::from_secs(6),
        async || basic(&cluster, &value).await.status == 401,
    )
    .await;
}
