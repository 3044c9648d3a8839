//! Agents as their approver sees them: sessions, and a prompt that reaches one.

use serde_json::json;

use super::stage::BrowserStage;

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_reaches_the_agent_whose_session_is_shown() {
    let (stage, bot, mut page) = BrowserStage::paired().await;
    let event = |name: &str, more: serde_json::Value| {
        let mut event = json!({
            "session_id": "0199a8e2-7c1b-7d30-9c55-3f1d2a6b8c90",
            "transcript_path": stage.directory.path().join("transcript.jsonl"),
            "cwd": stage.directory.path(),
            "permission_mode": "default",
            "hook_event_name": name,
        });
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event.to_string()
    };
    let call = json!({ "tool_name": "Bash", "tool_input": { "command": "make deploy" }, "tool_use_id": "toolu_1" });
    let call = bot.begin_with(&["hook", "claude"], &event("PreToolUse", call));
    page.open_request("make deploy").await;
    page.press("Details").await;
    let session = page.fact("Session").await;
    page.approve().await;
    let answer = call.end().await.expect(0).json();
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "allow");

    page.open("#/agents").await;
    page.choose("build machine").await;
    page.sees(&session).await;
    // The request has ended, so the session no longer waits.
    page.no_longer_sees("Waiting for you").await;
    page.sees("Working").await;
    let offered = format!(
        "return [...document.querySelectorAll('main option')].some((one) => one.text === 'session …{}')",
        &session[session.len() - 4..]
    );
    page.until("its session is offered", &offered).await;
    page.fill("Message", "Use the <staging> database.").await;
    page.press("Send").await;
    page.sees("Sent. The agent hasn’t picked it up yet.").await;
    let typed = event("UserPromptSubmit", json!({ "prompt": "Go on" }));
    let told = bot
        .begin_with(&["hook", "claude"], &typed)
        .end()
        .await
        .expect(0);
    assert!(
        told.out.contains("Use the <staging> database."),
        "{}",
        told.out
    );
    page.sees("Delivered to the agent.").await;

    // Its presence is hidden from then on: 404.
    page.may_lose_gateway();
    page.press("Unpair").await;
    page.sees("Unpair build machine?").await;
    page.press("Unpair").await;
    page.sees("No agents paired yet").await;
    let refused = bot.run(&["run", "--", "echo", "hello"]).await.expect(77);
    assert!(refused.err.contains("revoked"), "{}", refused.err);
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_for_a_project_is_given_seen_and_ended() {
    let (stage, bot, mut page) = BrowserStage::paired().await;
    // Its presence may not be known yet: 404.
    page.may_lose_gateway();
    let project = stage.directory.path().join("shop");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    let edit = |name: &str| {
        let event = json!({
            "session_id": "s-1", "cwd": project, "hook_event_name": "PreToolUse", "tool_name": "Write",
            "tool_input": { "file_path": project.join(name), "content": "new\n" },
        });
        bot.begin_with(&["hook", "claude"], &event.to_string())
    };
    let first = edit("a.txt");
    page.open_request("a.txt").await;
    page.press("Approve for longer…").await;
    page.sees("Permits, without asking you again: All changes, also deletion, of")
        .await;
    page.press("Edits in this project, this session").await;
    let real = std::fs::canonicalize(&project).unwrap();
    let inside = format!("All changes, also deletions, inside {}", real.display());
    page.sees(&format!("{inside}, while the agent’s session lasts"))
        .await;
    page.press("Approve").await;
    page.ends_as("Approved").await;
    first.end().await.expect(0);
    for name in ["b.txt", "c.txt"] {
        let told = edit(name).end().await.expect(0);
        assert!(
            told.out.contains("approved by alice, until"),
            "{}",
            told.out
        );
    }
    page.open("#/agents").await;
    page.choose("build machine").await;
    page.sees(&inside).await;
    page.sees("Used 2 times according to the agent’s machine")
        .await;
    page.press("End").await;
    page.sees("Sent. The agent’s machine confirms it when the agent makes its next call.")
        .await;
    let asked = edit("d.txt");
    page.sees("This device knows of no active permissions. Those given on other devices are listed there.")
        .await;
    page.open_request("d.txt").await;
    page.approve().await;
    asked.end().await.expect(0);
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_paused_and_goes_on() {
    let (_stage, bot, mut page) = BrowserStage::paired().await;
    page.may_lose_gateway();
    page.open("#/agents").await;
    page.choose("build machine").await;
    page.press("Pause").await;
    page.sees("Paused from this device until").await;
    let denied = bot.run(&["run", "--", "echo", "hello"]).await.expect(77);
    assert!(
        denied.err.contains("paused by alice until 20"),
        "{}",
        denied.err
    );
    page.sees("Confirmed by the agent’s machine.").await;
    page.press("Resume").await;
    page.sees("While an agent is paused").await;
    let asked = bot.begin(&["run", "--", "echo", "hello"]);
    page.open_request("echo hello").await;
    page.approve().await;
    asked.end().await.expect(0);
    page.close().await;
}
