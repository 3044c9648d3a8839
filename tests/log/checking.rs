//! A client that looks at the log notices every change of what it has seen.

use std::time::Duration;

use countersign::client::approver::{Approver, InboxRequest};
use countersign::client::enforcer::Enforcer;
use countersign::client::log::{LogReport, LogScope, LogState};
use countersign::protocol::decision::Verdict;
use tokio::time::Instant;

use super::logged;
use crate::client::people::{ClientScene, ask, choice, command, pair, question};
use crate::support::process::countersign;
use crate::support::{Cluster, until};

const PATIENCE: Duration = Duration::from_secs(30);

pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// Two clients that have seen the log, and then had a call approved.
pub struct LogScene {
    pub world: ClientScene,
    pub enforcer: Enforcer,
    pub alice: Approver,
    pub request: String,
    pub item: Option<InboxRequest>,
}

impl LogScene {
    pub async fn start() -> Self {
        let cluster = Cluster::with(1, |config| {
            logged(config);
            // Otherwise the node logs a second time what it finds deleted within a minute.
            config.log.overlap_ms = 0;
        });
        let world = ClientScene::with(cluster.await);
        world.cluster.sweeps("log", 1).await;
        let mut enforcer = world.enforcer("bot").await;
        let mut alice = world.approver("alice", "laptop").await;
        pair(&mut enforcer, &mut alice).await;
        let mut scene = Self {
            world,
            enforcer,
            alice,
            request: String::new(),
            item: None,
        };
        scene = scene.approve().await;
        // Both have not seen a log before, so they remember only what comes after this.
        until("the log begins", PATIENCE, async || {
            scene
                .look()
                .await
                .iter()
                .all(|report| matches!(report.state, LogState::Read { size: 2, .. }))
        })
        .await;
        scene = scene.approve().await;
        until("all is proven", PATIENCE, async || {
            let reports = scene.look().await;
            assert!(
                reports.iter().all(|report| report.problems.is_empty()),
                "{reports:?}"
            );
            reports[0].proven == 2 && reports[1].proven == 1
        })
        .await;
        scene
    }

    /// Has a call of the enforcer approved.
    pub async fn approve(self) -> Self {
        let Self {
            world,
            enforcer,
            alice,
            ..
        } = self;
        let asked = ask(enforcer, question(command(&["git", "push"])), &alice).await;
        let (item, request) = (asked.item(&alice).await, asked.request_id.clone());
        alice
            .decide(&item, &choice(Verdict::Approve))
            .await
            .unwrap();
        let (enforcer, outcome) = asked.end().await;
        outcome.unwrap();
        Self {
            world,
            enforcer,
            alice,
            request,
            item: Some(item),
        }
    }

    /// What the enforcer and the approver find.
    pub async fn look(&self) -> [LogReport; 2] {
        let all = LogScope::All;
        [
            self.enforcer.log_check(deadline()).run(all).await.unwrap(),
            self.alice.log_check(deadline()).run(all).await.unwrap(),
        ]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_of_a_row_by_the_owner_of_the_database_is_noticed() {
    let scene = LogScene::start().await;
    let database = &scene.world.cluster.database;
    let tables = [
        "exchanges",
        "exchange_payloads",
        "exchange_events",
        "log_leaves",
        "log_tiles",
        "log_heads",
    ];
    for table in tables {
        database
            .run(&format!(
                "create table kept_{table} as select * from {table}"
            ))
            .await;
    }
    let zeros = "decode(repeat('00', octet_length(hashes)), 'hex')";
    let request = &scene.request;
    // What is done, and whether the approver notices too: it remembers no outcome.
    for (done, by_approver) in [
        (
            format!("delete from exchanges where request_id = '{request}'"),
            true,
        ),
        (
            format!(
                "update exchanges set state = 'withdrawn', decision = null, decided_at = null, delivered_at = null where request_id = '{request}'"
            ),
            true,
        ),
        (
            format!(
                "delete from exchange_payloads where request_id = '{request}' and part = 'decision'"
            ),
            true,
        ),
        (
            format!(
                "update exchange_payloads set body = json_build_object('decision', 'reject') where request_id = '{request}' and part = 'decision'"
            ),
            true,
        ),
        (
            format!(
                "delete from exchange_payloads where request_id = '{request}' and part = 'outcome'"
            ),
            false,
        ),
        (
            format!(
                "update exchange_payloads set body = to_json('{{}}'::text) where request_id = '{request}' and part = 'outcome'"
            ),
            false,
        ),
        (
            format!(
                "delete from exchange_events where request_id = '{request}' and to_state = 'decided'"
            ),
            true,
        ),
        (
            format!(
                "update exchange_events set to_state = 'expired' where request_id = '{request}' and to_state = 'delivered'"
            ),
            false,
        ),
        (
            format!("delete from log_leaves where request_id = '{request}'"),
            true,
        ),
        (
            format!(
                "update log_leaves set leaf = 0 where request_id = '{request}' and kind = 'decision'"
            ),
            true,
        ),
        (format!("update log_tiles set hashes = {zeros}"), true),
        ("delete from log_heads".to_owned(), true),
        (
            "update log_heads set note = replace(note, '4', '3')".to_owned(),
            true,
        ),
        ("update log_heads set size = 3".to_owned(), true),
    ] {
        database.run(&done).await;
        let [enforcer, approver] = scene.look().await;
        assert!(!enforcer.problems.is_empty(), "{done}");
        assert_eq!(
            !approver.problems.is_empty(),
            by_approver,
            "{done}: {approver:?}"
        );
        for table in tables {
            database
                .run(&format!(
                    "delete from {table}; insert into {table} select * from kept_{table}"
                ))
                .await;
        }
        let again = scene.look().await;
        assert!(
            again.iter().all(|report| report.problems.is_empty()),
            "{done}: {again:?}"
        );
    }
    let kept =
        std::fs::read_to_string(scene.world.file("bot").path().with_extension("log.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let evidence = &kept["logs"][scene.world.cluster.tenant.as_str()]["evidence"];
    assert!(evidence.as_array().unwrap().len() >= 5, "{evidence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_reported_once_and_a_new_key_until_it_is_accepted() {
    let scene = LogScene::start().await;
    let url = &scene.world.cluster.database.url;
    let restart = |key: [u8; 32]| {
        let file = scene.world.directory.path().join("log.key");
        std::fs::write(
            &file,
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, key),
        )
        .unwrap();
        let mut command = countersign();
        command.args(["log", "restart", "--database-url", url]);
        command
            .env("COUNTERSIGN_LOG__KEY_FILE", file)
            .env("COUNTERSIGN_LOG__ORIGIN", "gateway.test");
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    restart(super::SEED);
    let reports = scene.look().await;
    for report in &reports {
        assert!(
            matches!(report.state, LogState::Read { epoch: 2, .. }),
            "{report:?}"
        );
        assert!(
            report.problems.iter().any(|it| it.contains("restarted")),
            "{report:?}"
        );
        assert!(report.proven > 0, "{report:?}");
    }
    let reports = scene.look().await;
    assert!(
        reports.iter().all(|report| report.problems.is_empty()),
        "{reports:?}"
    );
    restart([12; 32]);
    for _ in 0..2 {
        for report in scene.look().await {
            assert_eq!(report.state, LogState::Failed);
            assert!(
                report.problems[0].contains("the key that was seen first"),
                "{report:?}"
            );
        }
    }
    // The node still signs with the old key, and does not continue what another key has signed.
    scene
        .alice
        .log_check(deadline())
        .accept()
        .await
        .unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_say_what_the_log_proves_and_what_it_contradicts() {
    let scene = LogScene::start().await;
    let check = |profile: &str| {
        let mut command = countersign();
        command.args(["log", "check", "--profile", profile]);
        command.env(
            "COUNTERSIGN_PROFILES",
            scene.world.directory.path().join("countersign"),
        );
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (status, said) = check("laptop");
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("4 entries in epoch 1, 1 of this profile proven"),
        "{said}"
    );
    assert!(said.contains("key gateway.test/"), "{said}");
    scene
        .world
        .cluster
        .database
        .run("update exchange_payloads set body = '{}' where part = 'decision'")
        .await;
    for profile in ["laptop", "bot"] {
        let (status, said) = check(profile);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("was changed after it was logged"), "{said}");
    }
}
