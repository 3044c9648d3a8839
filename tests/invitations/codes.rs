//! Codes: used once, ended in every way, and all alike to a guesser.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{INVITATIONS, alice, code, invited, join};
use crate::support::{Cluster, counts, tally, until};

#[tokio::test(flavor = "multi_thread")]
async fn every_code_that_does_not_work_is_refused_alike() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let path = |made: &Value| format!("{INVITATIONS}/{}", made["invitationId"].as_str().unwrap());
    let used = invited(&admin, alice()).await;
    join(&cluster, &code(&used)).await.expect(201);
    let answer = admin.delete(&path(&used)).await;
    let answer = answer.refused(409, "INVALID_STATE");
    assert!(
        answer
            .detail("expected")
            .as_str()
            .unwrap()
            .contains("credential")
    );
    let withdrawn = invited(&admin, alice()).await;
    for _ in 0..2 {
        assert_eq!(admin.delete(&path(&withdrawn)).await.expect(204).text, "");
    }
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let key = cluster
        .key(
            &other,
            countersign::store::identity::credential::RoleName::Admin,
            None,
        )
        .await;
    let disabled = invited(&cluster.client(Some(&key)), alice()).await;
    cluster.administration.disable_tenant(&other).await.unwrap();
    let expired = invited(&admin, alice()).await;
    let good = code(&invited(&admin, alice()).await);
    cluster.pass(Duration::from_secs(24 * 3_600 - 60));
    let last = code(&invited(&admin, alice()).await);
    let before = cluster.database.counts().await;
    cluster.pass(Duration::from_secs(61));
    let mut answers = Vec::new();
    for code in [
        code(&used),
        code(&withdrawn),
        code(&disabled),
        code(&expired),
        good.clone(),
        "unknown".to_owned(),
        String::new(),
        format!("{last}A"),
        last.to_lowercase(),
        last[1..].to_owned(),
        "\u{e9}".repeat(1_000),
    ] {
        let answer = join(&cluster, &code).await.refused(404, "NOT_FOUND");
        answers.push(answer.json());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(cluster.database.counts().await, before);
    join(&cluster, &last).await.expect(201);
    admin
        .delete(&format!("{INVITATIONS}/unknown"))
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_who_join_at_once_one_gets_the_credential() {
    let cluster = Cluster::start(2).await;
    let admin = cluster.admin().await;
    let made = invited(&admin, alice()).await;
    let before = cluster
        .database
        .number("select count(*) from credentials")
        .await;
    let code = code(&made);
    let answers = join_all((0..20).map(|_| join(&cluster, &code))).await;
    assert_eq!(tally(&answers), counts([("201", 1), ("404 NOT_FOUND", 19)]));
    let after = cluster
        .database
        .number("select count(*) from credentials")
        .await;
    assert_eq!(after, before + 1);
    let audited = "select count(*) from audit_events where action in ('invitation.used', 'credential.created')
                      and actor = 'invitation holder'";
    assert_eq!(cluster.database.number(audited).await, 2);

    // Joined or withdrawn, never both.
    for _ in 0..5 {
        let made = invited(&admin, alice()).await;
        let path = format!("{INVITATIONS}/{}", made["invitationId"].as_str().unwrap());
        let code = super::code(&made);
        let (joined, withdrawn) = tokio::join!(join(&cluster, &code), admin.delete(&path));
        let outcome = (joined.outcome(), withdrawn.outcome());
        let either = [
            ("201".to_owned(), "409 INVALID_STATE".to_owned()),
            ("404 NOT_FOUND".to_owned(), "204".to_owned()),
        ];
        assert!(either.contains(&outcome), "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_says_who_invited_and_who_joined_and_never_the_code() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let chief = admin.key().split('_').nth(1).unwrap().to_owned();
    let used = invited(&admin, alice()).await;
    let joined = join(&cluster, &code(&used)).await.expect(201).json();
    let gone = invited(&admin, json!({ "role": "admin" })).await;
    let id = |made: &Value| made["invitationId"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        admin
            .delete(&format!("{INVITATIONS}/{}", id(&gone)))
            .await
            .expect(204);
    }
    let sql = "select string_agg(concat_ws(' ', action, subject, detail, 'by', actor, principal, address), '|'
                                 order by at, action desc)
                 from audit_events where action like 'invitation%' or actor = 'invitation holder'";
    let audit = cluster.database.text(sql).await;
    let new = joined["credentialId"].as_str().unwrap();
    let by = format!("by admin:{chief} {chief} 127.0.0.1");
    let expected = [
        format!("invitation.created {} approver alice {by}", id(&used)),
        format!(
            "invitation.used {} credential {new} by invitation holder {new} 127.0.0.1",
            id(&used)
        ),
        format!("credential.created {new} approver alice by invitation holder {new} 127.0.0.1"),
        format!("invitation.created {} admin {by}", id(&gone)),
        format!("invitation.withdrawn {} {by}", id(&gone)),
    ];
    assert_eq!(audit.split('|').collect::<Vec<_>>(), expected);
    let everything = cluster.database.everything().await;
    for secret in [
        code(&used),
        code(&gone),
        joined["apiKey"].as_str().unwrap().to_owned(),
    ] {
        assert!(!everything.contains(&secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invitations_are_forgotten_a_month_after_they_expired() {
    let cluster = Cluster::with(1, |config| {
        config.retention.every_seconds = 1;
        config.retention.share_percent = 100;
    })
    .await;
    let admin = cluster.admin().await;
    let used = invited(&admin, alice()).await;
    join(&cluster, &code(&used)).await.expect(201);
    invited(&admin, alice()).await;
    let count = "select count(*) from invitations";
    cluster.pass(Duration::from_secs(30 * 24 * 3_600));
    invited(&admin, alice()).await;
    assert_eq!(cluster.database.number(count).await, 3);
    cluster.pass(Duration::from_secs(24 * 3_600 + 60));
    until(
        "the old ones are forgotten",
        Duration::from_secs(60),
        async || cluster.database.number(count).await == 1,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_tried_no_faster_than_an_address_may_call() {
    let cluster = Cluster::with(1, |config| {
        config.rates.enabled = true;
        (config.rates.address, config.rates.address_burst) = (1, 5);
        config.tls.mode = countersign::config::TlsMode::Upstream;
        config.tls.proxies = vec![std::net::IpAddr::from([127, 0, 0, 1]).into()];
    })
    .await;
    let client = |key: Option<&str>| cluster.client(key);
    let (nobody, admin) = (client(None), cluster.admin().await);
    let from = async |address: &str, code: &str| {
        let call = nobody.call(reqwest::Method::POST, "/v1/join");
        let call = call.header("x-forwarded-proto", "https");
        let call = call.header("x-forwarded-for", address);
        call.json(&json!({ "code": code })).send().await
    };
    let call = admin.call(reqwest::Method::POST, INVITATIONS);
    let call = call.header("x-forwarded-proto", "https");
    let call = call.header("x-forwarded-for", "192.0.2.1");
    let made = call.json(&alice()).send().await.expect(201).json();
    // The proxy says that the caller came over TLS.
    assert!(
        made["link"]
            .as_str()
            .unwrap()
            .starts_with("https://127.0.0.1:"),
        "{made}"
    );
    let good = code(&made);
    let answers = join_all((0..10).map(|_| from("192.0.2.7", "wrong"))).await;
    let limited = answers.iter().filter(|answer| answer.status == 429);
    assert!(limited.count() >= 4, "{answers:?}");
    let answer = from("192.0.2.7", &good).await.refused(429, "RATE_LIMITED");
    assert!(answer.header("ratelimit").unwrap().contains("address"));
    from("192.0.2.8", &good).await.expect(201);
}
