//! The pool's guard: a call that is broken off takes its connection with it, and never hands it on.

use std::time::Duration;

use countersign::config::Secret;
use countersign::store::database::connect::connect_options;
use countersign::store::database::pool::ConnectionPool;
use countersign::store::database::tenant_scope::TenantScope;
use countersign::store::error::StoreError;
use futures_util::StreamExt as _;
use futures_util::stream;
use sqlx::postgres::PgConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::support::cluster::{config, metrics};
use crate::support::database::Database;
use crate::support::proxy::Proxy;
use crate::support::scrape::{read, whole};
use crate::support::until;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_broken_off_in_a_transaction_never_hands_its_connection_on() {
    let database = Database::create().await;
    database
        .run("create table trial (n bigint primary key)")
        .await;
    let mut config = config(&database).database;
    config.acquire_timeout_ms = 5_000;
    let pool = ConnectionPool::new("tests", &metrics(), &config, 8).unwrap();
    stream::iter(0..4_000_i64)
        .for_each_concurrent(32, |n| {
            let pool = pool.clone();
            async move {
                let call = async {
                    let mut lease = pool.lease(TenantScope::All).await.unwrap();
                    let outcome = async {
                        let mut transaction = lease.connection()?.begin().await?;
                        sqlx::query("insert into trial values ($1)")
                            .bind(-n - 1)
                            .execute(&mut *transaction)
                            .await?;
                        transaction.commit().await
                    };
                    let outcome = outcome.await;
                    lease.settle(outcome).unwrap();
                };
                // From before BEGIN is sent to after COMMIT is answered.
                let patience = Duration::from_micros(u64::try_from(n % 97).unwrap() * 40);
                drop(tokio::time::timeout(patience, call).await);
                let mut lease = pool.lease(TenantScope::All).await.unwrap();
                let lone = sqlx::query("insert into trial values ($1)")
                    .bind(n)
                    .execute(lease.connection().unwrap())
                    .await;
                lease.settle(lone).unwrap();
            }
        })
        .await;
    assert_eq!(
        database
            .number("select count(*) from trial where n >= 0")
            .await,
        4_000,
        "no write vanished"
    );
    let open = "select count(*) from pg_stat_activity
                 where datname = current_database() and state like 'idle in transaction%'";
    until(
        "no transaction stays open",
        Duration::from_secs(10),
        async || database.number(open).await == 0,
    )
    .await;
    let (size, idle) = pool.usage();
    assert_eq!(size, idle, "every lease was given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_says_so_in_time() {
    let database = Database::create().await;
    let metrics = metrics();
    let pool = ConnectionPool::new("tests", &metrics, &config(&database).database, 1).unwrap();
    let gauges = || {
        let read = read(&metrics);
        let open = |state| {
            let labels = [("pool", "tests"), ("state", state)];
            whole(read.value("countersign_pool_connections", &labels))
        };
        let of_pool = |name| whole(read.value(name, &[("pool", "tests")]));
        [
            open("used"),
            open("idle"),
            of_pool("countersign_pool_waiting"),
            of_pool("countersign_pool_limit"),
        ]
    };
    assert_eq!(gauges(), [0, 0, 0, 1]);
    let held = pool.lease(TenantScope::All).await.unwrap();
    assert_eq!(gauges(), [1, 0, 0, 1]);
    let waits = until("somebody waits", Duration::from_secs(2), async || {
        gauges() == [1, 0, 1, 1]
    });
    let (refused, ()) = tokio::join!(pool.lease(TenantScope::All), waits);
    assert!(matches!(refused.err(), Some(StoreError::Unavailable(_))));
    held.settle(Ok(())).unwrap();
    assert_eq!(gauges(), [0, 1, 0, 1]);
    pool.lease(TenantScope::All)
        .await
        .unwrap()
        .settle(Ok(()))
        .unwrap();
}

/// A call gives up before its connection is there. If the attempt ended with it, no call would ever
/// get one.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_slow_to_connect_is_connected_to_all_the_same() {
    const SIZE: usize = 4;
    let database = Database::create().await;
    let proxy = Proxy::start(&database.url).await;
    proxy.delay(1_500);
    let mut config = config(&database).database;
    config.url = Secret::from(proxy.url.as_str());
    config.acquire_timeout_ms = 300;
    let pool = ConnectionPool::new("tests", &metrics(), &config, SIZE).unwrap();
    let refused = pool.lease(TenantScope::All).await.err();
    assert!(
        matches!(refused, Some(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    until(
        "a later call gets the connection",
        Duration::from_secs(20),
        async || match pool.lease(TenantScope::All).await {
            Ok(lease) => lease.settle(Ok(())).is_ok(),
            Err(_) => false,
        },
    )
    .await;
    // Not one for each call that gave up.
    assert!(proxy.accepted() < 2 * SIZE, "{}", proxy.accepted());
}

/// One connection without an answer says nothing of the others while the server answers on them.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_does_not_close_those_that_are_answered() {
    let database = Database::create().await;
    let proxy = Proxy::start(&database.url).await;
    let mut config = config(&database).database;
    config.url = Secret::from(proxy.url.as_str());
    let pool = ConnectionPool::new("tests", &metrics(), &config, 4).unwrap();
    let silent = pool.lease(TenantScope::All).await.unwrap();
    let silence = proxy.silence_later();
    let mut other = pool.lease(TenantScope::All).await.unwrap();
    let mut busy = pool.lease(TenantScope::All).await.unwrap();
    let backend = async |connection: &mut PgConnection| -> i32 {
        let asked = sqlx::query_scalar("select pg_backend_pid()");
        asked.fetch_one(connection).await.unwrap()
    };
    let kept = backend(other.connection().unwrap()).await;
    let answering = pool.clone();
    let answered = tokio::spawn(async move {
        loop {
            let asked = sqlx::query("select").execute(busy.connection().unwrap());
            answering.within(asked).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    other.settle(Ok(())).unwrap();
    // The one that was given back last is taken first.
    silent.settle(Ok(())).unwrap();
    silence();
    // Connections that were just used are not tested.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let mut lease = pool.lease(TenantScope::All).await.unwrap();
    assert_eq!(backend(lease.connection().unwrap()).await, kept);
    assert_eq!(proxy.accepted(), 3);
    answered.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_notices_soon_when_a_node_has_vanished() {
    let database = Database::create().await;
    let options = connect_options(&config(&database).database).unwrap();
    let mut connection = options.connect().await.unwrap();
    let patience = "select concat_ws(' ', current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'),
                                     current_setting('tcp_keepalives_count'), current_setting('tcp_user_timeout'))";
    let patience: String = sqlx::query_scalar(patience)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(patience, "30 10 3 30000");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_replaced_when_it_is_old() {
    let database = Database::create().await;
    let mut config = config(&database).database;
    config.connection_max_age_seconds = 1;
    let pool = ConnectionPool::new("tests", &metrics(), &config, 1).unwrap();
    let backend = async || {
        let mut lease = pool.lease(TenantScope::All).await.unwrap();
        let asked = sqlx::query_scalar("select pg_backend_pid()");
        let found: sqlx::Result<i32> = asked.fetch_one(lease.connection().unwrap()).await;
        lease.settle(found).unwrap()
    };
    let first = backend().await;
    assert_eq!(backend().await, first);
    until(
        "there is another connection",
        Duration::from_secs(10),
        async || backend().await != first,
    )
    .await;
}
