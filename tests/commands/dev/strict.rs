//! `dev --strict` refuses what our deployments refuse: each row of the table in docs/api.md.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::parties;
use crate::support::process::{Process, countersign};
use crate::support::{
    Answer, Approver, Enforcer, envelope, full, hash_of, now, open, request_id, sealed, signed,
    signing_key,
};

fn start(arguments: &[&str]) -> (Process, Value, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ready.json");
    let mut command = countersign();
    command
        .args(["dev", "--ephemeral", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .arg("--ready-file")
        .arg(&file);
    let mut dev = Process::start(&mut command);
    let ready = dev.await_json(&file);
    (dev, ready, directory)
}

/// The rows of the table: what is tried, and the answer.
fn rows() -> Vec<(String, String)> {
    let guide = include_str!("../../../docs/api.md");
    let (_, section) = guide.split_once("\n## Refused in production\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let cells = section.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let mut cells = line.split(" | ");
        Some((cells.next()?.to_owned(), cells.nth(1)?.to_owned()))
    });
    cells.skip(1).collect()
}

async fn pair(enforcer: &Enforcer, approver: &Approver) {
    let body = json!({ "enforcerId": enforcer.id });
    let begun = enforcer.client.post("/v1/pairing/initiate", &body).await;
    let body = json!({ "nonce": begun.expect(200).json()["nonce"], "approverId": approver.id });
    let paired = approver.client.post("/v1/pairing/complete", &body).await;
    paired.expect(200);
}

async fn prompt(enforcer: &Enforcer, approver: &Approver) -> Answer {
    let id = request_id();
    let mut prompt = json!({
        "requestId": id, "artifactType": "prompt.send", "createdAt": now(), "target": "tool",
        "text": "go on", "promptHashAlg": "SHA-256", "metadata": { "enforcerId": enforcer.id },
    });
    prompt["promptHash"] = json!(hash_of(&prompt.to_string(), "promptHash"));
    let sender = json!({ "approverId": approver.id });
    let prompt = envelope("prompt.send", &id, sender, prompt);
    approver.client.post("/v1/prompt", &prompt).await
}

/// What the table says about each row, tried one after the other.
async fn attempts(ready: &Value) -> Vec<Answer> {
    let (bot, alice) = parties(ready);
    let unpaired = bot.submit(&request_id(), &alice.id, sealed()).await;
    let prompted = prompt(&bot, &alice).await;
    pair(&bot, &alice).await;
    let id = request_id();
    let plain = bot.submit(&id, &alice.id, open(&id)).await;
    let sealed_id = request_id();
    let body = sealed();
    let hash = body["artifactHash"].as_str().unwrap().to_owned();
    bot.submit(&sealed_id, &alice.id, body).await.expect(202);
    let foreign = signed(full(&sealed_id, &hash), &signing_key(7));
    let foreign = alice.decide(&sealed_id, foreign).await;
    // All at once: a slow machine makes no fifty a second one after the other.
    let ids: Vec<String> = (0..400).map(|_| request_id()).collect();
    let many = ids.iter().map(|id| bot.submit(id, &alice.id, sealed()));
    let mut many = join_all(many).await;
    let limited = many.iter().position(|answer| answer.status == 429);
    let fast = many.swap_remove(limited.unwrap_or_default());
    vec![plain, unpaired, prompted, foreign, fast]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_table_is_refused_by_dev_strict() {
    let (_dev, ready, _directory) = start(&["--strict"]);
    let answers = attempts(&ready).await;
    let rows = rows();
    assert_eq!(rows.len(), answers.len(), "{rows:?}");
    for ((tried, expected), answer) in rows.iter().zip(&answers) {
        let code = answer.code();
        let code = code.trim_start_matches("PROTO_ERR_");
        let got = format!("{} `{code}`", answer.status);
        assert_eq!(&got, expected, "{tried}: {answer:?}");
    }
    // Under row-level security, as a role that is no superuser.
    let database = sqlx::PgPool::connect(ready["databaseUrl"].as_str().unwrap())
        .await
        .unwrap();
    let roles = "select count(*) from pg_stat_activity where usename = 'countersign_application'";
    let roles: i64 = sqlx::query_scalar(roles)
        .fetch_one(&database)
        .await
        .unwrap();
    assert!(roles > 0);
    database.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_works_without_strict() {
    let (_dev, ready, _directory) = start(&[]);
    for answer in attempts(&ready).await {
        assert!(matches!(answer.status, 200 | 202), "{answer:?}");
    }
}

#[test]
fn strict_settings_are_those_of_compose() {
    let compose = include_str!("../../../docker-compose.yml");
    let nodes = include_str!("../../../src/dev/nodes.rs");
    for (key, value) in [
        ("COUNTERSIGN_DECISIONS__VERIFY", "required"),
        ("COUNTERSIGN_ARTIFACTS__OPEN", "false"),
        ("COUNTERSIGN_PAIRING__REQUIRED", "true"),
        ("COUNTERSIGN_DATABASE__ROW_SECURITY", "true"),
    ] {
        let quoted = format!("{key}: \"{value}\"");
        assert!(compose.contains(&quoted) || compose.contains(&format!("{key}: {value}")));
        assert!(nodes.contains(&format!("\"{key}\", \"{value}\"")), "{key}");
    }
}
