//! The pool tells its connections whom they are for: every time, and nobody else.

use std::time::Duration;

use countersign::protocol::id::{TenantId, TextId as _};
use countersign::store::database::lease::ConnectionLease;
use countersign::store::database::pool::ConnectionPool;
use countersign::store::database::tenant_scope::TenantScope;
use countersign::store::error::StoreError;
use futures_util::StreamExt as _;
use futures_util::stream;

use crate::support::cluster::{config, metrics};
use crate::support::database::Database;
use crate::support::roles::Roles;
use crate::support::until;

/// A pool that connects as the application.
fn pool(database: &Database, roles: &Roles, size: usize) -> ConnectionPool {
    let mut config = config(database);
    roles.confine(&mut config);
    config.database.acquire_timeout_ms = 5_000;
    ConnectionPool::new("tests", &metrics(), &config.database, size).unwrap()
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

/// Three tenants with an enforcer each, one of them with an odd name.
async fn scene() -> (Database, Roles) {
    let database = Database::create().await;
    database
        .run(
            "insert into enforcers (tenant_id, enforcer_id, transport, seen_at)
             select t, 'bot of ' || t, 'poll', now() from unnest('{a,b,*}'::text[]) as t",
        )
        .await;
    let roles = Roles::make(&database, "").await;
    (database, roles)
}

/// Asks for everything, as a statement would that forgot its tenant.
async fn everything(lease: Result<ConnectionLease, StoreError>) -> String {
    let mut lease = lease.unwrap();
    let found = sqlx::query_scalar(
        "select coalesce(string_agg(tenant_id, ' ' order by tenant_id), '') from enforcers",
    )
    .fetch_one(lease.connection().unwrap())
    .await;
    lease.settle(found).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_forgets_its_tenant_gets_the_rows_its_lease_is_for() {
    let (database, roles) = scene().await;
    let pool = pool(&database, &roles, 1);
    let (a, b, star, nobody) = (tenant("a"), tenant("b"), tenant("*"), tenant("nobody"));
    for _ in 0..2 {
        let found = everything(pool.lease(TenantScope::Tenant(&a)).await).await;
        assert_eq!(found, "a");
        let found = everything(pool.lease(TenantScope::of([&b, &a, &b])).await).await;
        assert_eq!(found, "a b");
        let found = everything(pool.lease(TenantScope::All).await).await;
        assert_eq!(found, "* a b");
        // A tenant whose name is the word for all of them is one like any other.
        let found = everything(pool.lease(TenantScope::Tenant(&star)).await).await;
        assert_eq!(found, "*");
        let found = everything(pool.lease(TenantScope::of([&star])).await).await;
        assert_eq!(found, "*");
        let found = everything(pool.lease(TenantScope::Tenant(&nobody)).await).await;
        assert_eq!(found, "");
        let found = everything(pool.lease(TenantScope::of([])).await).await;
        assert_eq!(found, "");
    }
    // Nor does it write elsewhere.
    let mut lease = pool.lease(TenantScope::Tenant(&a)).await.unwrap();
    let gone = sqlx::query("delete from enforcers")
        .execute(lease.connection().unwrap())
        .await;
    assert_eq!(lease.settle(gone).unwrap().rows_affected(), 1);
    drop(pool);
    roles.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_broken_off_never_leaves_its_reach_to_the_next() {
    let (database, roles) = scene().await;
    let pool = pool(&database, &roles, 4);
    let tenants = ["a", "b", "*"].map(tenant);
    stream::iter(0..4_000_usize)
        .for_each_concurrent(16, |n| {
            let (pool, tenants) = (pool.clone(), &tenants);
            async move {
                let broken = async {
                    everything(pool.lease(TenantScope::Tenant(&tenants[n % 3])).await).await
                };
                // From before the connection is told whom it is for to after the statement is
                // answered.
                let patience = Duration::from_micros(u64::try_from(n % 89).unwrap() * 20);
                drop(tokio::time::timeout(patience, broken).await);
                let next = &tenants[(n / 3) % 3];
                let found = everything(pool.lease(TenantScope::Tenant(next)).await).await;
                assert_eq!(found, next.as_str());
            }
        })
        .await;
    let (size, idle) = pool.usage();
    assert_eq!(size, idle, "every lease was given back");
    drop(pool);
    roles.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_broke_while_idle_is_replaced_before_its_call() {
    let (database, roles) = scene().await;
    let pool = pool(&database, &roles, 2);
    let (a, b) = (tenant("a"), tenant("b"));
    let held = pool.lease(TenantScope::Tenant(&a)).await.unwrap();
    assert_eq!(
        everything(pool.lease(TenantScope::Tenant(&a)).await).await,
        "a"
    );
    held.settle(Ok(())).unwrap();
    assert_eq!(pool.usage(), (2, 2));
    let theirs = format!("usename = '{}'", roles.name("application"));
    database
        .run(&format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where {theirs}"
        ))
        .await;
    let left = format!("select count(*) from pg_stat_activity where {theirs}");
    until("they are gone", Duration::from_secs(10), async || {
        database.number(&left).await == 0
    })
    .await;
    assert_eq!(
        everything(pool.lease(TenantScope::Tenant(&b)).await).await,
        "b"
    );
    drop(pool);
    roles.remove().await;
}
