//! The log of decisions and outcomes, as the gateway builds it: nothing is missing, and nothing twice.

pub mod checking;
mod lying;

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::config::{Config, Secret};
use countersign::e2e::{
    EntryKind, LogCheckpoint, LogEntry, LogProof, LogSigner, TreeHash, verify_consistency,
};
use countersign::protocol::canonical::Sha256Hex;
use countersign::protocol::id::{RequestId, TextId as _};
use countersign::store::identity::credential::RoleName;

use crate::support::database::{Database, finish};
use crate::support::exchanges::{decided, delivered, parties};
use crate::support::roles::Roles;
use crate::support::{Client, Cluster, until};

const PATIENCE: Duration = Duration::from_secs(20);
const SEED: [u8; 32] = [11; 32];

/// The key that the test's gateways sign with.
pub fn signer() -> LogSigner {
    LogSigner::from_secret(&SEED)
}

/// A node with a log, which it builds all the time.
pub fn logged(config: &mut Config) {
    config.log.key = Secret::from(STANDARD.encode(SEED).as_str());
    "gateway.test".clone_into(&mut config.log.origin);
    config.log.build_ms = 200;
}

async fn logs(count: usize) -> Cluster {
    Cluster::with(count, logged).await
}

/// The entries of an exchange: kind and place. Each is verified by its own proof.
async fn entries(client: &Client, request: &str) -> Vec<(String, u64)> {
    let answer = client
        .get(&format!("/v1/log/proof?requestId={request}"))
        .await;
    if answer.status == 404 {
        return Vec::new();
    }
    let answer = answer.expect(200).json();
    let key = signer().key().unwrap();
    let list = answer["entries"].as_array().unwrap().clone();
    list.into_iter()
        .map(|entry| {
            let proof = LogProof::parse(entry["proof"].as_str().unwrap()).unwrap();
            let kind = entry["kind"].as_str().unwrap();
            let logged = LogEntry {
                kind: EntryKind::parse(kind).unwrap(),
                request_id: RequestId::parse(request),
                digest: Sha256Hex::parse(entry["digest"].as_str().unwrap()).unwrap(),
            };
            proof.verify(&logged, &key).unwrap();
            (kind.to_owned(), proof.index)
        })
        .collect()
}

async fn until_logged(client: &Client, request: &str) {
    until("it is logged", PATIENCE, async || {
        !entries(client, request).await.is_empty()
    })
    .await;
}

async fn checkpoint(client: &Client) -> LogCheckpoint {
    let note = client.get("/v1/log/checkpoint").await.expect(200).text;
    LogCheckpoint::open(&note, &signer().key().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_log_each_decision_once_though_the_builder_dies() {
    let cluster = logs(3).await;
    let (enforcer, approver) = parties(&cluster).await;
    let first = decided(&enforcer, &approver).await;
    until_logged(&approver.client, &first).await;
    let before = checkpoint(&approver.client).await;
    // A builder that died keeps its lease until it ends.
    let lease = "update sweep_leases set node_id = gen_random_uuid(), until = clock_timestamp() + interval '2 s' where sweep = 'log'";
    cluster.database.run(lease).await;
    let mut requests = vec![first];
    for _ in 0..40 {
        requests.push(delivered(&enforcer, &approver).await);
    }
    let mut places = BTreeSet::new();
    for request in &requests {
        until_logged(&approver.client, request).await;
        for (kind, place) in entries(&enforcer.client, request).await {
            // These acknowledgements have no outcome.
            assert_eq!(kind, "decision");
            assert!(places.insert(place), "{place} twice");
        }
    }
    let after = checkpoint(&approver.client).await;
    assert_eq!(after.size, requests.len() as u64);
    assert_eq!(places, (0..after.size).collect());
    for node in 0..3 {
        let path = format!("/v1/log/consistency?from={}&to={}", before.size, after.size);
        let answer = approver.client.on(node).get(&path).await.expect(200).json();
        let hashes = answer["hashes"].as_array().unwrap().iter();
        let hashes: Vec<_> = hashes
            .map(|it| TreeHash::parse(it.as_str().unwrap()).unwrap())
            .collect();
        verify_consistency(before.tree(), after.tree(), &hashes).unwrap();
    }
    let size = cluster
        .database
        .number(
            "select octet_length(hashes)::bigint from log_tiles where level = 0 and tile_index = 0",
        )
        .await;
    assert_eq!(u64::try_from(size).unwrap(), 32 * after.size);
    let tile = approver
        .client
        .get(&format!("/v1/log/tile/0/000.p/{}", after.size))
        .await;
    assert_eq!(
        tile.expect(200).header("content-type"),
        Some("application/octet-stream")
    );
    for path in ["0/000", "0/001", "1/000", "0/0", "x/000"] {
        approver
            .client
            .get(&format!("/v1/log/tile/{path}"))
            .await
            .refused(404, "NOT_FOUND");
    }
    for (query, name) in [
        ("from=2&to=1", "to"),
        ("from=1&to=100000", "to"),
        ("from=x&to=1", "from"),
        ("from=1", "to"),
    ] {
        let answer = approver
            .client
            .get(&format!("/v1/log/consistency?{query}"))
            .await;
        assert_eq!(answer.refused(400, "VALIDATION").detail("parameter"), name);
    }
}

/// A copy of the rows of a decided exchange under another id, in a transaction that has not committed.
const COPY: &str = "
    insert into exchanges select (jsonb_populate_record(e, jsonb_build_object('request_id', 'held'))).* from exchanges e where request_id = '%';
    insert into exchange_payloads select (jsonb_populate_record(p, jsonb_build_object('request_id', 'held'))).* from exchange_payloads p where request_id = '%';
    insert into exchange_events select (jsonb_populate_record(v, jsonb_build_object('request_id', 'held', 'at', clock_timestamp()))).* from exchange_events v where request_id = '%'";

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_held_back_is_logged_when_it_comes() {
    // Without an overlap, so that the horizon alone keeps it from being passed over.
    let cluster = Cluster::with(2, |config| {
        logged(config);
        config.log.overlap_ms = 0;
    })
    .await;
    let (enforcer, approver) = parties(&cluster).await;
    // The log begins.
    cluster.sweeps("log", 1).await;
    let first = decided(&enforcer, &approver).await;
    until_logged(&approver.client, &first).await;
    let mut held = cluster.database.holding(&COPY.replace('%', &first)).await;
    let later = decided(&enforcer, &approver).await;
    cluster.sweeps("log", 5).await;
    // Nothing that came later goes before it.
    assert!(entries(&approver.client, &later).await.is_empty());
    finish(&mut held, "commit").await;
    until_logged(&approver.client, "held").await;
    until_logged(&approver.client, &later).await;
    assert_eq!(checkpoint(&approver.client).await.size, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_forgets_which_entry_is_whose_and_keeps_the_tree() {
    let cluster = Cluster::with(1, |config| {
        logged(config);
        config.retention.exchange_seconds = 3_600;
        config.retention.every_seconds = 1;
    })
    .await;
    let (enforcer, approver) = parties(&cluster).await;
    let old = delivered(&enforcer, &approver).await;
    until_logged(&approver.client, &old).await;
    let before = checkpoint(&approver.client).await;
    cluster.pass(Duration::from_secs(4_000));
    let leaves = "select count(*) from log_leaves";
    until("the exchange is gone", PATIENCE, async || {
        cluster.database.number(leaves).await == 0
    })
    .await;
    assert!(entries(&approver.client, &old).await.is_empty());
    let new = decided(&enforcer, &approver).await;
    until_logged(&approver.client, &new).await;
    let after = checkpoint(&approver.client).await;
    assert_eq!((before.size, after.size), (1, 2));
    assert_eq!(
        entries(&approver.client, &new).await,
        [("decision".to_owned(), 1)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_have_logs_of_their_own_behind_row_level_security() {
    let database = Database::create().await;
    let roles = Roles::make(&database, "").await;
    let cluster = Cluster::on(database, 2, |config| {
        logged(config);
        roles.confine(config);
    })
    .await;
    let (enforcer, approver) = parties(&cluster).await;
    let request = delivered(&enforcer, &approver).await;
    until_logged(&approver.client, &request).await;
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let admin = RoleName::Admin;
    let stranger = cluster.client(Some(&cluster.key(&other, admin, None).await));
    for path in [
        "/v1/log/checkpoint",
        "/v1/log/tile/0/000.p/1",
        &format!("/v1/log/proof?requestId={request}"),
        "/v1/log/consistency?from=1&to=1",
    ] {
        approver.client.get(path).await.expect(200);
        stranger.get(path).await.refused(404, "NOT_FOUND");
    }
    assert!(
        checkpoint(&approver.client)
            .await
            .origin
            .is_of(&cluster.tenant)
    );
    let mut reader = roles.connect("reader").await;
    let refused = sqlx::raw_sql("select count(*) from log_heads")
        .execute(&mut reader)
        .await;
    assert!(refused.is_err());
    // The nodes' role adds to trees, and cannot remove them.
    let mut node = roles.connect("application").await;
    for table in ["log_heads", "log_tiles"] {
        let deleted = sqlx::raw_sql(sqlx::AssertSqlSafe(format!("delete from {table}")))
            .execute(&mut node)
            .await;
        assert!(
            deleted
                .unwrap_err()
                .to_string()
                .contains("permission denied")
        );
    }
    drop((reader, node));
    cluster.stop().await;
    roles.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_tables_are_never_signed_and_hold_up_nobody_else() {
    let cluster = logs(1).await;
    let (enforcer, approver) = parties(&cluster).await;
    let first = decided(&enforcer, &approver).await;
    until_logged(&approver.client, &first).await;
    let note = approver.client.get("/v1/log/checkpoint").await.text;
    cluster
        .database
        .run("update log_tiles set hashes = sha256(hashes)")
        .await;
    let lost = decided(&enforcer, &approver).await;
    let admin = RoleName::Admin;
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let stranger = cluster.client(Some(&cluster.key(&other, admin, None).await));
    let copy = COPY
        .replace("'held'", "'held', 'tenant_id', '@'")
        .replace('@', other.as_str())
        .replace('%', &lost);
    cluster.database.run(&copy).await;
    until_logged(&stranger, "held").await;
    assert_eq!(approver.client.get("/v1/log/checkpoint").await.text, note);
    assert!(entries(&approver.client, &lost).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_there_is_no_log() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = parties(&cluster).await;
    let request = decided(&enforcer, &approver).await;
    for path in [
        "checkpoint",
        "tile/0/000",
        &format!("proof?requestId={request}"),
        "consistency?from=1&to=1",
    ] {
        approver
            .client
            .get(&format!("/v1/log/{path}"))
            .await
            .refused(404, "NOT_FOUND");
    }
    assert_eq!(
        cluster
            .database
            .number("select count(*) from log_heads")
            .await,
        0
    );
    let mut config = Config::default();
    config.database.url = Secret::from("postgres://db/app");
    for (key, origin, named) in [
        ("AAAA", "x", "log.key_file"),
        (&*STANDARD.encode(SEED), "", "log.origin"),
        (&*STANDARD.encode(SEED), "a b", "log.origin"),
    ] {
        config.log.key = Secret::from(key);
        config.log.origin = origin.to_owned();
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
