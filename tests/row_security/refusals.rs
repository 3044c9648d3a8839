//! Where configuration and role do not fit together, nothing starts: it would find an empty
//! database.

use countersign::app::App;
use countersign::clock::Clock;
use countersign::config::Config;
use countersign::store::database::schema;
use sqlx::Executor as _;

use crate::support::Cluster;
use crate::support::cluster::config;
use crate::support::database::Database;
use crate::support::process::{countersign, run};
use crate::support::roles::Roles;

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_would_see_nothing_is_told_what_to_set() {
    let database = Database::create().await;
    let cluster = Cluster::on(database, 1, |_| {}).await;
    let roles = Roles::make(&cluster.database, "").await;
    let with = |role: &str, row_security: bool, arguments: &[&str]| {
        run(countersign()
            .env("COUNTERSIGN_DATABASE__URL", roles.url(role))
            .env(
                "COUNTERSIGN_DATABASE__ROW_SECURITY",
                row_security.to_string(),
            )
            .args(arguments))
    };
    // First of all in this process: what did not refuse here would run on there.
    let mut unset = config(&cluster.database);
    roles.confine(&mut unset);
    unset.database.row_security = false;
    let refused = App::build(unset, Clock::system()).await;
    let refused = refused.err().expect("a refusal").to_string();
    assert!(
        refused.contains("database.row_security = true"),
        "{refused}"
    );
    for arguments in [
        &["check"][..],
        &["serve", "--listen", "127.0.0.1:0"],
        &["tenant", "list"],
    ] {
        let (ok, text) = with("application", false, arguments);
        assert!(!ok, "{text}");
        assert!(text.contains("database.row_security = true"), "{text}");
    }

    let (ok, text) = with("application", true, &["check"]);
    assert!(ok && text.contains("ok       row security"), "{text}");
    let (ok, text) = with("application", true, &["tenant", "list"]);
    assert!(ok && text.contains(cluster.tenant.as_str()), "{text}");
    let (ok, text) = with("owner", false, &["check"]);
    assert!(ok && text.contains("ok       row security"), "{text}");
    // On, but of no use: it works, and says so.
    let (ok, text) = with("owner", true, &["check"]);
    assert!(ok && text.contains("warning  row security"), "{text}");
    for node in cluster.nodes {
        node.stop().await;
    }
    roles.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_migrates_and_the_application_works_on_what_it_made() {
    let database = Database::empty("roles_before_tables").await;
    let roles = Roles::make(&database, "").await;
    let refused = schema::migrate(&roles.url("application")).await;
    assert!(refused.is_err(), "the application owns nothing");
    schema::migrate(&roles.url("owner")).await.unwrap();
    // Nodes can use a migration's additions before the script has been run again.
    let early = Cluster::on(database.clone(), 1, |config| roles.confine(config)).await;
    early
        .admin()
        .await
        .get("/platform/v1/audit")
        .await
        .expect(200);
    roles.run("");
    early
        .admin()
        .await
        .get("/platform/v1/audit")
        .await
        .expect(200);
    for node in early.nodes {
        node.stop().await;
    }
    roles.remove().await;
}

/// A deployment that began without roles has migrated as another user.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_migrated_goes_to_the_owner() {
    let database = Database::create().await;
    let roles = Roles::make(&database, "").await;
    let later = "alter table messages add column later integer;
                 alter domain message_kind add constraint later check (value <> '')";
    let mut owner = roles.connect("owner").await;
    owner.execute(later).await.unwrap();
    drop(owner);
    roles.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_makes_the_roles_need_not_be_a_superuser() {
    let database = Database::empty("roles_by_administrator").await;
    let name = "test_administrator";
    database
        .run(&format!(
            "create role {name} login createrole nosuperuser;
             alter database roles_by_administrator owner to {name}"
        ))
        .await;
    let roles = Roles::made_by(name, &database, "").await;
    schema::migrate(&roles.url("owner")).await.unwrap();
    roles.run("");
    let cluster = Cluster::on(database.clone(), 1, |config| roles.confine(config)).await;
    let another = cluster.administration.create_tenant("another").await;
    another.unwrap();
    for (tenants, seen) in [("", 0), (cluster.tenant.as_str(), 1), ("*", 2)] {
        roles.run(tenants);
        let mut reader = roles.connect("reader").await;
        let count = super::count(&mut reader, "select count(*) from tenants").await;
        assert_eq!(count, seen, "{tenants}");
    }
    for node in cluster.nodes {
        node.stop().await;
    }
    roles.remove().await;
    database
        .run(&format!(
            "alter database roles_by_administrator owner to countersign;
             drop owned by {name}; drop role {name}"
        ))
        .await;
}

#[test]
fn row_security_is_refused_where_sessions_are_shared() {
    let mut config = Config::default();
    config.database.url = "postgres://localhost/countersign".into();
    config.database.row_security = true;
    config.validate().unwrap();
    config.database.session_settings = false;
    let refused = config.validate().unwrap_err().to_string();
    assert!(
        refused.starts_with("database.row_security: ") && refused.contains("PgBouncer"),
        "{refused}"
    );
}
