//! Access to presence.

use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use super::scene;
use crate::support::push::Stream;
use crate::support::{Client, Cluster};

const LIST: &str = "/v1/presence/enforcers";

async fn ids(client: &Client) -> Vec<Value> {
    let answer = client.get(LIST).await.expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let list = answer.json();
    let list = list.as_array().expect("an array");
    list.iter()
        .map(|record| record["enforcerDeviceId"].clone())
        .collect()
}

async fn members(cluster: &Cluster) -> Vec<Client> {
    let mut members = Vec::new();
    for role in [RoleName::Enforcer, RoleName::Approver, RoleName::Admin] {
        let key = cluster.key(&cluster.tenant, role, None).await;
        members.push(cluster.client(Some(&key)));
    }
    members.push(cluster.enforcer("bound").await.client);
    members.push(cluster.approver("bound").await.client);
    members
}

#[tokio::test(flavor = "multi_thread")]
async fn everyone_of_a_tenant_reads_its_enforcers_and_no_others() {
    let (cluster, _) = scene(2).await;
    let members = members(&cluster).await;
    for member in &members {
        assert_eq!(ids(member).await, Vec::<Value>::new());
    }
    let key = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let there = cluster
        .administration
        .create_tenant("others")
        .await
        .unwrap();
    let elsewhere = cluster.key(&there, RoleName::Enforcer, None).await;
    let mut open = Vec::new();
    for (id, key) in [
        ("b", &key),
        ("a", &key),
        ("a%2Fb%3Fc=%C3%BC%20%25", &key),
        ("B", &key),
        ("Z", &elsewhere),
        ("a", &elsewhere),
    ] {
        let url = &cluster.nodes[open.len() % 2].url;
        open.push(
            Stream::connect(url, "enforcers", id, key, None)
                .await
                .unwrap(),
        );
    }
    for member in &members {
        assert_eq!(ids(member).await, ["B", "a", "a/b?c=ü %", "b"]);
        let odd = format!("{LIST}/a%2Fb%3Fc=%C3%BC%20%25");
        let odd = member.get(&odd).await.expect(200);
        assert_eq!(odd.header("content-type"), Some("application/json"));
        assert_eq!(odd.json()["enforcerDeviceId"], "a/b?c=ü %");
        let strange = member
            .get(&format!("{LIST}/Z"))
            .await
            .refused(404, "NOT_FOUND");
        let unknown = member
            .get(&format!("{LIST}/Y"))
            .await
            .refused(404, "NOT_FOUND");
        assert_eq!(strange.text, unknown.text);
        assert_eq!(unknown.header("content-type"), Some("application/json"));
    }
    let strangers = cluster.key(&there, RoleName::Approver, None).await;
    let strangers = cluster.client(Some(&strangers));
    assert_eq!(ids(&strangers).await, ["Z", "a"]);

    for path in [LIST.to_owned(), format!("{LIST}/a")] {
        cluster
            .operator()
            .get(&path)
            .await
            .refused(403, "FORBIDDEN");
        let refused = cluster.client(None).get(&path).await;
        let refused = refused.refused(401, "UNAUTHENTICATED");
        assert_eq!(refused.json()["retryable"], json!(false));
    }
}
