//! The pairings in force, as their sides see them.

use serde_json::{Value, json};

use super::{COMPLETE, INITIATE, PAIRINGS, REVOKE, pair, resolve, revocation, text};
use crate::support::{Client, Cluster};

/// Everything a client is shown, page by page.
async fn all(client: &Client, limit: usize) -> Vec<Value> {
    let (mut items, mut query) = (Vec::new(), format!("?limit={limit}"));
    loop {
        let page = client.get(&format!("{PAIRINGS}{query}")).await.expect(200);
        assert_eq!(page.header("content-type"), Some("application/json"));
        let page = page.json();
        let shown = page["items"].as_array().unwrap();
        assert!(shown.len() <= limit);
        items.extend(shown.iter().cloned());
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("?limit={limit}&cursor={cursor}"),
            None => return items,
        }
    }
}

/// The tokens of a listing.
fn tokens(items: &[Value]) -> Vec<String> {
    let token = |item: &Value| item["routingToken"].as_str().unwrap().to_owned();
    items.iter().map(token).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_side_lists_its_own_pairings_in_force_oldest_first() {
    let cluster = Cluster::start(3).await;
    let (bot, other) = (
        cluster.enforcer("build-bot").await,
        cluster.enforcer("deploy-bot").await,
    );
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let body = json!({ "enforcerId": "build-bot", "enforcerLabel": "Bot", "workspaceName": "w", "publicKey": "k1" });
    let begun = bot.client.post(INITIATE, &body).await.expect(200);
    resolve(&alice, &text(&begun, "code")).await.expect(200);
    let body = json!({ "nonce": begun.json()["nonce"], "approverId": "alice", "publicKey": "k2" });
    let paired = alice.client.post(COMPLETE, &body).await.expect(200);
    let first = text(&paired, "routingToken");
    let second = pair(&bot, &bob).await;
    let third = pair(&other, &alice).await;

    for limit in [1, 2, 200] {
        assert_eq!(tokens(&all(&bot.client, limit).await), [&*first, &*second]);
        assert_eq!(tokens(&all(&other.client, limit).await), [&*third]);
        assert_eq!(tokens(&all(&alice.client, limit).await), [&*first, &*third]);
        assert_eq!(tokens(&all(&bob.client, limit).await), [&*second]);
        let any = cluster.any_enforcer().await;
        assert_eq!(
            tokens(&all(&any, limit).await),
            [&*first, &*second, &*third]
        );
    }
    let shown = all(&alice.client, 1).await;
    assert_eq!(
        shown[0],
        json!({
            "enforcerId": "build-bot",
            "approverId": "alice",
            "enforcerLabel": "Bot",
            "workspaceName": "w",
            "enforcerPublicKey": "k1",
            "approverPublicKey": "k2",
            "routingToken": first,
            "pairedAt": shown[0]["pairedAt"],
        })
    );
    assert_eq!(
        shown[1],
        json!({
            "enforcerId": "deploy-bot",
            "approverId": "alice",
            "routingToken": third,
            "pairedAt": shown[1]["pairedAt"],
        })
    );

    // Pairing again moves it to the end, without what was not said again; revoking removes it.
    let newer = pair(&bot, &alice).await;
    let shown = all(&bot.client, 1).await;
    assert_eq!(tokens(&shown), [&*second, &*newer]);
    assert_eq!(shown[1].get("enforcerLabel"), None);
    assert_eq!(shown[1].get("approverPublicKey"), None);
    bob.client
        .post(REVOKE, &revocation(&second))
        .await
        .expect(200);
    assert_eq!(tokens(&all(&bot.client, 1).await), [&*newer]);
    assert!(all(&bob.client, 1).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_asked_for_as_elsewhere() {
    let cluster = Cluster::start(1).await;
    let bot = cluster.enforcer("build-bot").await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    pair(&bot, &alice).await;
    pair(&bot, &bob).await;
    let page = bot.client.get("/v1/pairings?limit=1").await.expect(200);
    let own = text(&page, "nextCursor");
    let any = cluster.any_enforcer().await;
    for (client, query) in [
        (&bot.client, "?limit=0"),
        (&bot.client, "?limit=x"),
        (&bot.client, "?cursor=x"),
        (&bot.client, "?cursor="),
        (&alice.client, &format!("?cursor={own}")),
        (&any, &format!("?cursor={own}")),
    ] {
        let answer = client.get(&format!("{PAIRINGS}{query}")).await;
        answer.refused(400, "VALIDATION");
    }
    let page = bot.client.get("/v1/pairings?limit=9999").await.expect(200);
    assert_eq!(page.json()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_reads_its_own_pairings_and_not_those_of_others() {
    let cluster = Cluster::start(1).await;
    let bot = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    pair(&bot, &alice).await;
    // Thousands of each; every second of them revoked.
    let many = format!(
        "insert into pairings (tenant_id, enforcer_id, approver_id, nonce, token_hash, paired_at, revoked_at)
         select '{}', case when n <= 2000 then 'bot-' || n else 'build-bot' end,
                case when n <= 2000 then 'alice' else 'approver-' || n end, translate(encode(sha256(n::text::bytea), 'base64'), '+/=', '-_'), '', now() - n * interval '1 s',
                case when n % 2 = 0 then now() end
           from generate_series(1, 4000) n",
        cluster.tenant
    );
    cluster.database.run(&many).await;
    let any = cluster.any_enforcer().await;
    cluster.database.run("vacuum analyze").await;
    cluster.database.run("select pg_stat_reset()").await;
    for client in [&bot.client, &alice.client, &any] {
        let page = client.get(&format!("{PAIRINGS}?limit=5")).await.expect(200);
        assert_eq!(page.json()["items"].as_array().unwrap().len(), 5);
    }
    let read = cluster.stop().await.rows_read("pairings").await;
    println!("rows read for three pages: {read}");
    assert!((15..=100).contains(&read), "{read} rows read");
}
