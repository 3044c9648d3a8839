//! The second wall: nodes connect as a role that does not own the tables, and say for which tenants
//! each call is. The database keeps tenants apart even where a statement of ours forgets to.

mod life;
mod pool;
mod reader;
mod refusals;
mod team;

use std::time::Duration;

use countersign::protocol::id::TenantId;
use countersign::store::identity::credential::RoleName;
use futures_util::{StreamExt as _, stream};
use sqlx::PgConnection;

use self::life::Tenant;
use crate::log::logged;
use crate::support::database::Database;
use crate::support::roles::Roles;
use crate::support::{Approver, Cluster, Enforcer, compact, request_id, sealed, until};

/// Two nodes behind the wall.
async fn walled() -> (Cluster, Roles) {
    let database = Database::create().await;
    let roles = Roles::make(&database, "").await;
    let cluster = Cluster::on(database, 2, |config| {
        roles.confine(config);
        config.push.reoffer_seconds = 1;
        logged(config);
    })
    .await;
    (cluster, roles)
}

/// Ends the nodes and takes the roles away.
async fn end(cluster: Cluster, roles: Roles) {
    for node in cluster.nodes {
        node.stop().await;
    }
    roles.remove().await;
}

/// Every table that has tenants, whatever migration made it.
async fn tables(database: &Database) -> Vec<String> {
    let names = "select string_agg(c.table_name, ',' order by c.table_name)
                   from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
                  where c.table_schema = 'public' and c.column_name = 'tenant_id' and t.table_type = 'BASE TABLE'";
    let names = database.text(names).await;
    names.split(',').map(str::to_owned).collect()
}

/// Says for whom a connection of the test's own is, as a node would.
async fn reach(connection: &mut PgConnection, tenants: &str) {
    sqlx::query("select set_config('countersign.tenants', $1, false)")
        .bind(tenants)
        .execute(connection)
        .await
        .expect("a setting");
}

/// Runs a statement; the rows it touched, or the code of its refusal.
async fn attempt(connection: &mut PgConnection, sql: &str) -> Result<u64, String> {
    let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(connection)
        .await;
    match done {
        Ok(done) => Ok(done.rows_affected()),
        Err(sqlx::Error::Database(error)) => Err(error.code().expect("a code").into_owned()),
        Err(error) => panic!("{error}"),
    }
}

async fn count(connection: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_one(connection)
        .await
        .expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_with_tenants_has_the_policy_and_every_view_its_readers_rights() {
    let database = Database::create().await;
    let tables = tables(&database).await;
    assert!(tables.len() >= 20, "{tables:?}");
    let policy = async |table: &str| {
        let sql = format!(
            "select concat_ws(' ', c.relrowsecurity, p.permissive, p.roles, p.cmd, p.qual, p.with_check)
               from pg_class c left join pg_policies p on p.schemaname = 'public' and p.tablename = c.relname
              where c.oid = 'public.{table}'::regclass"
        );
        database.text(&sql).await
    };
    let expected = policy("tenants").await;
    assert!(
        expected.starts_with("t PERMISSIVE {public} ALL ((tenant_id = ANY "),
        "{expected}"
    );
    for table in tables {
        assert_eq!(policy(&table).await, expected, "{table}");
    }
    let views = "select count(*) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'v'
                    and not coalesce('security_invoker=true' = any (reloptions), false)";
    assert_eq!(database.number(views).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_behind_the_wall_and_nobody_sees_or_writes_past_it() {
    let (cluster, roles) = walled().await;
    let here = cluster.tenant.clone();
    let there = cluster.administration.create_tenant("b").await.unwrap();
    // Held, so that their channels stand in the tables too.
    let lives = [
        Tenant::live(&cluster, &here).await,
        Tenant::live(&cluster, &there).await,
    ];
    let logs = "select count(distinct tenant_id) from log_leaves";
    until("both have a log", Duration::from_secs(20), async || {
        cluster.database.number(logs).await == 2
    })
    .await;

    let mut application = roles.connect("application").await;
    for table in tables(&cluster.database).await {
        let all = format!("select count(*) from {table}");
        let of = |tenant: &TenantId| format!("{all} where tenant_id = '{tenant}'");
        // Sweeps run meanwhile, so all that is known of a table is that neither tenant is missing.
        for tenant in [&here, &there] {
            let rows = cluster.database.number(&of(tenant)).await;
            assert!(rows > 0, "nothing in {table} to look for");
        }
        let row = format!(
            "select row_to_json(t)::text from {table} t where tenant_id = '{here}' limit 1"
        );
        let row = cluster.database.text(&row).await;
        let copy = format!(
            "insert into {table} select (json_populate_record(null::{table}, $r${row}$r$)).*"
        );
        let touch = format!("update {table} set tenant_id = tenant_id where tenant_id = '{here}'");
        let delete = format!("delete from {table} where tenant_id = '{here}'");
        for outside in ["", "nobody", &format!("{there}\n"), "**", "*\n"] {
            reach(&mut application, outside).await;
            assert_eq!(count(&mut application, &of(&here)).await, 0, "{table}");
            let seen = count(&mut application, &all).await;
            assert_eq!(seen > 0, outside.starts_with(there.as_str()), "{table}");
            assert_eq!(
                attempt(&mut application, &copy).await,
                Err("42501".to_owned()),
                "{table}"
            );
            // Statements without a grant on the table are refused; others find nothing.
            for change in [&touch, &delete] {
                let changed = attempt(&mut application, change).await;
                assert!(
                    changed == Ok(0) || changed == Err("42501".to_owned()),
                    "{change}: {changed:?}"
                );
            }
        }
        reach(&mut application, &format!("{here}\n")).await;
        assert!(count(&mut application, &all).await > 0, "{table}");
        assert_eq!(count(&mut application, &of(&there)).await, 0, "{table}");
    }
    let mut nameless = roles.connect("application").await;
    for table in tables(&cluster.database).await {
        let all = format!("select count(*) from {table}");
        assert_eq!(count(&mut nameless, &all).await, 0, "{table}");
    }

    // Nobody rewrites history, of any tenant, nor the schema.
    reach(&mut application, "*").await;
    for sql in [
        "update exchange_events set actor = 'nobody'",
        "delete from exchange_events",
        "update audit_events set actor = 'nobody'",
        "delete from audit_events",
        "update device_statements set device_id = 'x'",
        "delete from device_statements",
        "update exchange_payloads set body = '{}'",
        "delete from credentials",
        "delete from _sqlx_migrations",
        "alter table exchanges disable row level security",
        "drop policy tenant_reach on exchanges",
        "truncate exchanges",
    ] {
        assert_eq!(
            attempt(&mut application, sql).await,
            Err("42501".to_owned()),
            "{sql}"
        );
    }
    drop((lives, application, nameless));
    end(cluster, roles).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_share_batches_behind_the_wall_and_everyone_gets_their_own() {
    let (cluster, roles) = walled().await;
    let mut parties = Vec::new();
    for _ in 0..8 {
        let tenant = cluster.administration.create_tenant("t").await.unwrap();
        let enforcer = cluster.key(&tenant, RoleName::Enforcer, None).await;
        let approver = cluster.key(&tenant, RoleName::Approver, None).await;
        parties.push((
            Enforcer {
                client: cluster.client(Some(&enforcer)),
                id: "build-bot".into(),
            },
            Approver {
                client: cluster.client(Some(&approver)),
                id: "alice".into(),
            },
        ));
    }
    // The same ids in every tenant: only the tenant tells them apart.
    let requests: Vec<_> = (0..25).map(|_| request_id()).collect();
    let each = parties
        .iter()
        .flat_map(|parties| requests.iter().map(move |request| (parties, request)));
    stream::iter(each)
        .for_each_concurrent(64, |((bot, alice), request)| async move {
            bot.submit(request, "alice", sealed()).await.expect(202);
            let waiting = bot.wait(request, 30);
            let decide = async {
                alice.decide(request, compact("approve")).await.expect(200);
            };
            let (waited, ()) = tokio::join!(waiting, decide);
            let message = waited.expect(200).json()["msgId"].clone();
            bot.ack(request, message.as_str().unwrap())
                .await
                .expect(200);
            assert_eq!(bot.state(request).await, "delivered");
        })
        .await;
    for (_, alice) in &parties {
        assert_eq!(alice.inbox_ids().await, [""; 0]);
    }
    end(cluster, roles).await;
}
