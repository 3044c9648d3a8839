//! The role that only reads: the history of its tenants, and nothing else.

use countersign::store::identity::credential::RoleName;

use super::{attempt, count, end, reach, walled};
use crate::support::exchanges::{DAY, decided, pending};
use crate::support::{Approver, Cluster, Enforcer};

const HISTORY: [&str; 8] = [
    "exchange_history",
    "pending_inbox",
    "decision_latency",
    "exchanges",
    "inbox_items",
    "exchange_events",
    "audit_events",
    "tenants",
];

/// A tenant with an exchange that waits and one that is decided.
async fn tenant(cluster: &Cluster) -> String {
    let tenant = cluster.administration.create_tenant("t").await.unwrap();
    let key = cluster.key(&tenant, RoleName::Enforcer, None).await;
    let bot = Enforcer {
        client: cluster.client(Some(&key)),
        id: "build-bot".into(),
    };
    let key = cluster.key(&tenant, RoleName::Approver, None).await;
    let alice = Approver {
        client: cluster.client(Some(&key)),
        id: "alice".into(),
    };
    pending(&bot, DAY).await;
    decided(&bot, &alice).await;
    tenant.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_the_history_of_its_tenants_and_nothing_else() {
    let (cluster, roles) = walled().await;
    let [a, b, c] = [
        tenant(&cluster).await,
        tenant(&cluster).await,
        tenant(&cluster).await,
    ];
    // By default nothing; then one, two, all; and one again.
    let all = [&a, &b, &c].map(String::as_str);
    for (named, visible) in [
        (String::new(), &[][..]),
        (a.clone(), &all[..1]),
        (format!("{a}, {b}"), &all[..2]),
        ("*".to_owned(), &all[..]),
        (a.clone(), &all[..1]),
    ] {
        roles.run(&named);
        let mut reader = roles.connect("reader").await;
        for table in HISTORY {
            for tenant in all {
                let rows = format!("select count(*) from {table} where tenant_id = '{tenant}'");
                let seen = count(&mut reader, &rows).await > 0;
                assert_eq!(seen, visible.contains(&tenant), "{table} of {named}");
            }
        }
        if named != "*" {
            // Saying that it is for others gains it nothing.
            for claim in ["*", &format!("{a}\n{b}\n{c}")] {
                reach(&mut reader, claim).await;
                for table in HISTORY {
                    let others = format!("select count(*) from {table} where tenant_id = '{c}'");
                    assert_eq!(count(&mut reader, &others).await, 0, "{table}");
                }
            }
        }
    }
    let mut reader = roles.connect("reader").await;
    for sql in [
        "select from credentials",
        "select from exchange_payloads",
        "select from pairing_sessions",
        "select from routing_tokens",
        "select from session_snapshots",
        "delete from exchange_events",
        "update exchanges set state = 'decided'",
        "insert into tenants (tenant_id, name) values ('x', 'x')",
        "create table mine (n integer)",
    ] {
        assert_eq!(
            attempt(&mut reader, sql).await,
            Err("42501".to_owned()),
            "{sql}"
        );
    }
    drop(reader);
    end(cluster, roles).await;
}
