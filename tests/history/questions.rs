//! `docs/history.md` is correct: its columns are those of the catalogue, and each of its queries,
//! run as the reader, returns what happened.

use std::collections::BTreeMap;

use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::support::exchanges::{DAY, decided, delivered, pending};
use crate::support::roles::Roles;
use crate::support::{
    Cluster, Enforcer, compact, registration, request_id, sealed_for, signed, signing_key, until,
    with,
};

const DOCUMENT: &str = include_str!("../../docs/history.md");

#[tokio::test(flavor = "multi_thread")]
async fn every_column_is_documented_here_and_in_the_catalogue_alike() {
    let database = crate::support::database::Database::create().await;
    let mut tables = 0;
    for section in DOCUMENT.split("\n## `").skip(1) {
        let (table, rest) = section.split_once('`').unwrap();
        let mut paragraphs = rest.trim_start().split("\n\n");
        let described = paragraphs.next().unwrap();
        let rows = paragraphs.next().unwrap().lines().skip(2);
        let documented: Vec<&str> = std::iter::once(described).chain(rows).collect();
        let catalogue = format!(
            "select concat_ws(chr(10), obj_description(c.oid, 'pg_class'),
                              string_agg(format('| %s | %s | %s |', a.attname, format_type(a.atttypid, a.atttypmod),
                                                col_description(c.oid, a.attnum)), chr(10) order by a.attnum))
               from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
              where c.oid = 'public.{table}'::regclass
              group by c.oid"
        );
        let documented = documented.join("\n").replace('`', "");
        assert_eq!(documented, database.text(&catalogue).await, "{table}");
        tables += 1;
    }
    assert_eq!(tables, 5);
}

/// The questions, by their headings.
pub fn questions() -> BTreeMap<&'static str, &'static str> {
    let questions: BTreeMap<_, _> = DOCUMENT
        .split("\n### ")
        .skip(1)
        .map(|part| {
            let (heading, rest) = part.split_once('\n').unwrap();
            let query = rest.split("```sql\n").nth(1).unwrap();
            (heading, query.split("```").next().unwrap())
        })
        .collect();
    assert_eq!(questions.len(), DOCUMENT.matches("```sql").count());
    questions
}

/// The rows of a question, with times and numbers in whole seconds.
async fn ask(reader: &mut PgConnection, sql: &str, tenant: &str, request: &str) -> Vec<Value> {
    let sql = sql
        .replace(":'tenant'", &format!("'{tenant}'"))
        .replace(":'request'", &format!("'{request}'"));
    let sql = sql.trim().trim_end_matches(';');
    let rows = format!("select coalesce(json_agg(row_to_json(q)), '[]')::text from ({sql}) q");
    let text: String = sqlx::query_scalar(sqlx::AssertSqlSafe(rows))
        .fetch_one(reader)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// Some members of each row, in order.
fn pick(rows: &[Value], members: &str) -> Value {
    let row = |row: &Value| -> Value {
        members
            .split(' ')
            .map(|member| match row[member].as_f64() {
                // Latencies, which are what the test made them and a little more.
                Some(number) => json!(number.floor()),
                None => row[member].clone(),
            })
            .collect()
    };
    rows.iter().map(row).collect()
}

/// Past exchanges, each by a name.
struct Past {
    cluster: Cluster,
    roles: Roles,
    requests: BTreeMap<&'static str, String>,
}

/// Exchanges in every state, as old as `moved` says.
async fn past() -> Past {
    let cluster = Cluster::start(1).await;
    let (bot, robot) = (
        cluster.enforcer("build-bot").await,
        cluster.enforcer("robot").await,
    );
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let admin = cluster.admin().await;
    let hour = DAY / 24;

    let key = registration(&cluster.tenant, "bob", "bobs", &signing_key(1));
    let registered = bob
        .client
        .put("/platform/v1/approvers/bob/keys/bobs", &key)
        .await;
    registered.expect(200);
    let untaken = request_id();
    let asked = robot.submit(&untaken, "bob", sealed_for(20 * DAY)).await;
    asked.expect(202);
    let verdict = with(&compact("approve"), "/signerKeyId", json!("bobs"));
    let verdict = bob.decide(&untaken, signed(verdict, &signing_key(1))).await;
    assert_eq!(verdict.expect(200).body("/verified"), true);

    let unseen = pending(&bot, hour).await;
    let seen = pending(&bot, hour).await;
    let waiting = pending(&bot, 20 * DAY).await;
    for request in [&seen, &waiting] {
        let items = alice.inbox("?limit=200").await.body("/items");
        let items = items.as_array().unwrap().clone();
        let item = items.iter().find(|item| item["requestId"] == **request);
        let message = item.unwrap()["msgId"].as_str().unwrap().to_owned();
        alice.ack(request, &message).await.expect(200);
    }
    let withdrawn = pending(&bot, DAY).await;
    bot.withdraw(&withdrawn).await.expect(200);
    let cancelled = pending(&bot, DAY).await;
    let path = format!("/platform/v1/exchanges/{cancelled}/cancel");
    let reason = json!({ "reason": "an incident" });
    admin.post(&path, &reason).await.expect(200);
    let requests = BTreeMap::from([
        ("quick", delivered(&bot, &alice).await),
        ("slow", delivered(&bot, &alice).await),
        ("fresh", decided(&bot, &alice).await),
        ("untaken", untaken),
        ("unseen", unseen),
        ("seen", seen),
        ("waiting", waiting),
        ("unread", pending(&bot, 20 * DAY).await),
        ("withdrawn", withdrawn),
        ("cancelled", cancelled),
        ("old", decided(&robot, &alice).await),
    ]);
    // Another tenant, which the reader may see too: the questions are about one.
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let key = cluster.key(&other, RoleName::Enforcer, None).await;
    let others = Enforcer {
        client: cluster.client(Some(&key)),
        id: "build-bot".into(),
    };
    pending(&others, DAY).await;
    let roles = Roles::make(&cluster.database, "*").await;
    Past {
        cluster,
        roles,
        requests,
    }
}

impl Past {
    /// Moves an exchange back: accepted so many minutes ago, decided so many seconds later,
    /// delivered after as many again.
    async fn moved(&self, name: &str, minutes: u32, seconds: u32) {
        let request = &self.requests[name];
        let sql = format!(
            "with moved as (
                 update exchanges e
                    set accepted_at = t.accepted_at, expires_at = t.accepted_at + (e.expires_at - e.accepted_at),
                        decided_at = case when e.decided_at is not null then t.decided_at end,
                        delivered_at = case when e.delivered_at is not null then t.decided_at + interval '{seconds} s' end
                   from (select clock_timestamp() - interval '{minutes} min' as accepted_at,
                                clock_timestamp() - interval '{minutes} min' + interval '{seconds} s' as decided_at) t
                  where e.request_id = '{request}' returning e.accepted_at, e.expires_at)
             update inbox_items i set created_at = m.accepted_at, expires_at = m.expires_at
               from moved m where i.request_id = '{request}'"
        );
        self.cluster.database.run(&sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_is_answered_by_what_happened() {
    let past = past().await;
    for (name, minutes, seconds) in [
        ("quick", 60, 10),
        ("slow", 60, 60),
        ("fresh", 2, 20),
        ("untaken", 60, 300),
        ("unseen", 120, 0),
        ("seen", 120, 0),
        ("waiting", 90, 0),
        ("unread", 30, 0),
        ("old", 40 * 24 * 60, 100),
    ] {
        past.moved(name, minutes, seconds).await;
    }
    let swept = "select count(*) from exchange_events where to_state = 'expired'";
    until("expiry is written down", DAY / 1_440, async || {
        past.cluster.database.number(swept).await == 2
    })
    .await;
    let mut reader = past.roles.connect("reader").await;
    let id = |name: &str| past.requests[name].clone();
    let mut questions = questions();
    let mut answer = async |heading: &str| {
        let sql = questions
            .remove(heading)
            .unwrap_or_else(|| panic!("{heading}"));
        ask(&mut reader, sql, past.cluster.tenant.as_str(), &id("quick")).await
    };

    assert_eq!(
        pick(
            &answer("Who decided what?").await,
            "decided_by decision verified enforcer_id artifact_type request_id"
        ),
        json!([
            [
                "alice",
                "reject",
                false,
                "build-bot",
                "command.review",
                id("fresh")
            ],
            [
                "bob",
                "approve",
                true,
                "robot",
                "command.review",
                id("untaken")
            ],
            [
                "alice",
                "reject",
                false,
                "build-bot",
                "command.review",
                id("slow")
            ],
            [
                "alice",
                "reject",
                false,
                "build-bot",
                "command.review",
                id("quick")
            ],
        ])
    );
    assert_eq!(
        pick(
            &answer("How long do approvers take?").await,
            "decided_by decisions median_seconds p95_seconds"
        ),
        json!([["bob", 1.0, 300.0, 300.0], ["alice", 3.0, 20.0, 56.0]])
    );
    // Perhaps it is just past midnight.
    let days = answer("Is it getting slower?").await;
    assert_eq!(sum(&days, "decisions"), 4);
    assert!(
        days.iter()
            .all(|day| day["median_seconds"].as_f64() > Some(9.0))
    );
    assert_eq!(
        pick(
            &answer("What expired unseen?").await,
            "request_id enforcer_id approver_ids"
        ),
        json!([[id("unseen"), "build-bot", ["alice"]]])
    );
    assert_eq!(
        pick(
            &answer("What was seen, and still expired?").await,
            "approver_id left_unanswered"
        ),
        json!([["alice", 1.0]])
    );
    assert_eq!(
        pick(
            &answer("Which decisions has nobody taken?").await,
            "enforcer_id request_id decision"
        ),
        json!([["robot", id("untaken"), "approve"]])
    );
    let waiting = answer("What waits, and for how long?").await;
    assert_eq!(
        pick(&waiting, "approver_id waiting unseen"),
        json!([["alice", 2.0, 1.0]])
    );
    let oldest = waiting[0]["oldest"].as_str().unwrap();
    assert!(oldest.starts_with("01:30:"), "{oldest}");
    assert_eq!(
        pick(
            &answer("What became of each enforcer's requests?").await,
            "enforcer_id requests approved rejected expired taken_back pending"
        ),
        json!([
            ["build-bot", 9.0, 0.0, 3.0, 2.0, 2.0, 2.0],
            ["robot", 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
        ])
    );
    assert_eq!(
        pick(
            &answer("What happened to this exchange?").await,
            "from_state to_state actor node"
        ),
        json!([
            [null, "pendingApproval", "enforcer:build-bot", "node-0"],
            ["pendingApproval", "decided", "approver:alice", "node-0"],
            ["decided", "delivered", "enforcer:build-bot", "node-0"]
        ])
    );
    let taken_back = answer("Who took requests back, and why?").await;
    assert_eq!(
        pick(&taken_back, "state end_reason request_id"),
        json!([
            ["cancelled", "an incident", id("cancelled")],
            ["withdrawn", null, id("withdrawn")]
        ])
    );
    let actors: Vec<&str> = taken_back
        .iter()
        .filter_map(|row| row["actor"].as_str())
        .collect();
    assert!(actors[0].starts_with("admin:"), "{actors:?}");
    assert_eq!(actors[1], "enforcer:build-bot");
    assert_eq!(
        pick(
            &answer("Which decisions are unverified?").await,
            "decided_by unverified"
        ),
        json!([["alice", 3.0]])
    );
    assert_eq!(
        pick(
            &answer("Which key signed what?").await,
            "decided_by signer_key_id decisions"
        ),
        json!([["bob", "bobs", 1.0]])
    );
    assert_eq!(
        pick(
            &answer("How long do decisions travel?").await,
            "enforcer_id delivered median_seconds longest_seconds"
        ),
        json!([["build-bot", 2.0, 35.0, 60.0]])
    );
    assert_eq!(sum(&answer("When is it busy?").await, "requests"), 10);
    let audited = answer("Who gave out or took away credentials and keys?").await;
    let actions: Vec<&str> = audited
        .iter()
        .filter_map(|row| row["action"].as_str())
        .collect();
    assert_eq!(actions[..5], ["credential.created"; 5]);
    assert_eq!(actions[5..], ["key.registered"]);
    assert_eq!(audited[5]["subject"], "bob/bobs");
    assert_eq!(audited[5]["actor"], "approver:bob");
    assert_eq!(audited[5]["address"], "127.0.0.1");
    assert!(questions.is_empty(), "not asked: {:?}", questions.keys());

    drop(reader);
    for node in past.cluster.nodes {
        node.stop().await;
    }
    past.roles.remove().await;
}

/// The sum of a member over all rows.
fn sum(rows: &[Value], member: &str) -> i64 {
    rows.iter().map(|row| row[member].as_i64().unwrap()).sum()
}
