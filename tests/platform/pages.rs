//! Tenants and credentials come in pages: each once, oldest first, under a cursor of that very
//! list.

use std::collections::HashSet;

use countersign::store::identity::credential::RoleName;
use serde_json::Value;

use super::{CREDENTIALS, TENANTS, items};
use crate::support::{Client, Cluster};

/// Everything, page by page.
async fn all(client: &Client, path: &str, limit: usize) -> Vec<Value> {
    let (mut found, mut query) = (Vec::new(), format!("?limit={limit}"));
    loop {
        let page = client.get(&format!("{path}{query}")).await.expect(200);
        let mut here = items(&page);
        assert!(!here.is_empty() && here.len() <= limit);
        found.append(&mut here);
        match page.json()["nextCursor"].as_str() {
            Some(cursor) => query = format!("?limit={limit}&cursor={cursor}"),
            None => return found,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_and_credentials_come_in_pages() {
    let cluster = Cluster::with(1, |config| config.limits.page_default = 5).await;
    let (operator, admin) = (cluster.operator(), cluster.admin().await);
    for n in 0..6 {
        let name = format!("tenant {n}");
        cluster.administration.create_tenant(&name).await.unwrap();
        cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    }
    // Made in one instant: the id breaks the tie, and none is lost at the edge of a page.
    let instant = "update tenants set created_at = '2026-01-01'; update credentials set created_at = '2026-01-01'";
    cluster.database.run(instant).await;
    for (client, path, id) in [
        (&operator, TENANTS, "tenantId"),
        (&admin, CREDENTIALS, "credentialId"),
    ] {
        let first = client.get(path).await.expect(200);
        assert_eq!(items(&first).len(), 5);
        assert!(first.json()["nextCursor"].is_string());
        let whole = client.get(&format!("{path}?limit=200")).await.expect(200);
        assert!(whole.json()["nextCursor"].is_null());
        for limit in [1, 2, 7, 8] {
            let found = all(client, path, limit).await;
            assert_eq!(found, items(&whole), "{path} by {limit}");
        }
        let ids: HashSet<String> = items(&whole)
            .iter()
            .map(|item| item[id].to_string())
            .collect();
        assert_eq!(ids.len(), 7);
        for query in ["?limit=0", "?limit=x", "?cursor=x"] {
            let refused = client.get(&format!("{path}{query}")).await;
            refused.refused(400, "VALIDATION");
        }
    }
    // A cursor belongs to its list.
    let first = admin.get(CREDENTIALS).await.expect(200).json();
    let cursor = first["nextCursor"].as_str().unwrap();
    for path in [TENANTS, CREDENTIALS] {
        let refused = operator.get(&format!("{path}?cursor={cursor}")).await;
        refused.refused(400, "VALIDATION");
    }
}
