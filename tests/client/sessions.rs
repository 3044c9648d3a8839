//! An enforcer's reports of its agent's session.

use countersign::protocol::id::SessionId;
use countersign::protocol::session::{EndReason, SessionState};
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::people::{ClientScene, PATIENCE, refusing};

async fn shown(world: &ClientScene, session: &SessionId) -> Value {
    let admin = world.cluster.admin().await;
    let answer = admin.get(&format!("/v1/session/{session}")).await;
    answer.expect(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_reported_from_start_to_end_and_repeats_change_nothing() {
    let world = ClientScene::start().await;
    let bot = world.enforcer("bot").await;
    let session = bot.session("claude", "any text, of any length").unwrap();
    let deadline = || Instant::now() + PATIENCE;
    let long = format!("laptop{}", "x".repeat(5_000));
    for _ in 0..2 {
        let start = bot.start_session(&session, &long, deadline());
        start.await.unwrap();
    }
    let state = SessionState::WaitingApproval;
    bot.session_status(&session, state, deadline())
        .await
        .unwrap();
    let seen = shown(&world, &session).await;
    assert_eq!(seen["state"], "waiting_approval");
    assert_eq!(seen["agentHost"], long[..1_024]);
    assert_eq!(seen.get("repoRef"), None);
    assert_eq!(seen["enforcerId"], "bot");
    let payload = json!({ "kind": "note", "n": 1 });
    bot.snapshot(&session, &payload, deadline()).await.unwrap();
    for _ in 0..2 {
        let end = bot.end_session(&session, EndReason::UserEnd, deadline());
        end.await.unwrap();
    }
    // An agent may take up a session again that the gateway has closed.
    bot.session_status(&session, SessionState::Executing, deadline())
        .await
        .unwrap();
    let seen = shown(&world, &session).await;
    assert_eq!(seen["reason"], "user_end");
    assert_eq!(seen["snapshots"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_opens_a_session_that_was_never_started() {
    let world = ClientScene::start().await;
    let bot = world.enforcer("bot").await;
    let session = bot.session("codex", "mid-way").unwrap();
    let deadline = Instant::now() + PATIENCE;
    bot.session_status(&session, SessionState::Executing, deadline)
        .await
        .unwrap();
    assert_eq!(shown(&world, &session).await["state"], "executing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_a_session_is_a_uuid_of_its_own_for_each_enforcer_agent_and_id() {
    let world = ClientScene::start().await;
    let (bot, other) = (world.enforcer("bot").await, world.enforcer("other").await);
    let names = [
        bot.session("claude", "1").unwrap(),
        bot.session("claude", "2").unwrap(),
        bot.session("codex", "1").unwrap(),
        other.session("claude", "1").unwrap(),
        bot.session("claud", "e1").unwrap(),
    ];
    for (n, name) in names.iter().enumerate() {
        let uuid = Uuid::try_parse(name.as_str()).unwrap();
        assert_eq!(uuid.get_version_num(), 8);
        assert!(!names[..n].contains(name));
    }
    assert_eq!(bot.session("claude", "1").unwrap(), names[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_away_costs_no_more_than_the_deadline() {
    let world = ClientScene::start().await;
    let (_held, nowhere) = refusing();
    let bot = world.enforcer_at("bot", vec![nowhere]).await;
    let session = bot.session("claude", "1").unwrap();
    let deadline = Instant::now() + std::time::Duration::from_millis(300);
    let lost = bot.session_status(&session, SessionState::Idle, deadline);
    let lost = tokio::time::timeout(PATIENCE, lost).await.expect("an end");
    assert!(lost.unwrap_err().is_unavailable());
}
