//! Questions that an agent asks its user: a person answers them, or the agent's own dialog does.

use countersign::agent::Agent;
use countersign::client::approver::ApproverChoice;
use countersign::e2e::{ArtifactHints, DecisionScope, GrantMatch};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::process::{HookScene, Ran, artifact, end};
use crate::client::grants::permits;
use crate::client::people::{because, choice};

fn answered(answers: &[&[&str]]) -> ApproverChoice {
    let texts = |texts: &&[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    ApproverChoice {
        hints: ArtifactHints {
            answers: Some(answers.iter().map(texts).collect()),
            ..ArtifactHints::default()
        },
        ..choice(Verdict::Approve)
    }
}

fn two_questions() -> Value {
    json!({ "questions": [
        {
            "question": "Which database?", "header": "Database", "multiSelect": false,
            "options": [
                { "label": "PostgreSQL", "description": "On a server" },
                { "label": "SQLite", "description": "In a file" },
            ],
        },
        {
            "question": "Which features?", "header": "Features", "multiSelect": true,
            "options": [{ "label": "Auth", "description": "a" }, { "label": "Logs", "description": "b" }],
        },
    ] })
}

fn left_to_the_agent(ran: &Ran) {
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(
        ran.err.contains("the question stays with the agent"),
        "{}",
        ran.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reaches_claude_code_with_the_input_of_its_tool() {
    let scene = HookScene::start().await;
    let input = two_questions();
    let ask = scene.claude("AskUserQuestion", &input);
    let child = scene.start_hook(Agent::Claude, &[], &ask);
    let shown = scene
        .decide(&answered(&[&["SQLite"], &["Auth", "été, ça va"]]))
        .await;
    assert_eq!(shown["artifactType"], "checkpoint.review");
    assert_eq!(shown["payload"]["kind"], "question");
    assert_eq!(shown["payload"]["questions"], input["questions"]);
    let ran = end(child).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let own = &ran.json()["hookSpecificOutput"];
    assert_eq!(own["permissionDecision"], "allow");
    assert_eq!(own["permissionDecisionReason"], "answered by alice");
    let answers = json!({ "Which database?": "SQLite", "Which features?": "Auth, été, ça va" });
    let mut expected = input.clone();
    expected["answers"] = answers;
    assert_eq!(own["updatedInput"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_agents_are_told_the_answer_as_the_reason_of_a_denial() {
    let scene = HookScene::start().await;
    let cwd = scene.project();
    let choices = json!([{ "label": "Blue", "description": "The sky" }, { "label": "Red" }]);
    for (agent, input) in [
        (
            Agent::Codex,
            scene.claude("request_user_input", &json!({ "questions": [
                { "id": "colour", "header": "Colour", "question": "Which colour?", "options": choices },
            ] })),
        ),
        (
            Agent::Copilot,
            json!({
                "sessionId": "s", "cwd": cwd, "toolName": "ask_user",
                "toolArgs": { "question": "Which colour?", "choices": ["Blue", "Red"], "allow_freeform": true },
            })
            .to_string(),
        ),
        (
            Agent::Gemini,
            json!({
                "session_id": "s", "cwd": cwd, "hook_event_name": "BeforeTool", "tool_name": "ask_user",
                "tool_input": { "questions": [
                    { "question": "Which colour?", "header": "Colour", "type": "choice", "options": choices },
                ] },
            })
            .to_string(),
        ),
        (
            Agent::Opencode,
            json!({
                "event": "tool.execute.before", "sessionID": "s", "callID": "c", "tool": "question",
                "args": { "questions": [
                    { "question": "Which colour?", "header": "Colour", "multiple": false, "options": choices },
                ] },
                "directory": cwd,
            })
            .to_string(),
        ),
        (
            Agent::Cursor,
            json!({
                "hook_event_name": "preToolUse", "conversation_id": "s", "workspace_roots": [cwd],
                "tool_name": "AskQuestion",
                "tool_input": { "questions": [
                    { "id": "c", "prompt": "Which colour?", "options": choices, "allow_multiple": false },
                ] },
            })
            .to_string(),
        ),
    ] {
        let child = scene.start_hook(agent, &[], &input);
        let shown = scene.decide(&answered(&[&["Blue"]])).await;
        let question = &shown["payload"]["questions"][0];
        assert_eq!(question["question"], "Which colour?", "{agent}");
        assert_eq!(question["multiSelect"], false, "{agent}");
        assert_eq!(question["options"][1]["label"], "Red", "{agent}");
        let ran = end(child).await;
        ran.is_denied(agent, "Which colour?");
        ran.is_denied(agent, "alice has answered");
        ran.is_denied(agent, "Answer: Blue");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_is_asked_by_the_agent_itself() {
    let scene = HookScene::start().await;
    let ask = scene.claude("AskUserQuestion", &two_questions());
    // Dismissed; approved without answers, by a client that knows no questions; not in time.
    for verdict in [Verdict::Reject, Verdict::Approve] {
        let child = scene.start_hook(Agent::Claude, &[], &ask);
        scene.decide(&choice(verdict)).await;
        left_to_the_agent(&end(child).await);
    }
    let ran = scene.hook(Agent::Claude, &["--timeout", "2s"], &ask).await;
    left_to_the_agent(&ran);
    // A person's words reach the model.
    let child = scene.start_hook(Agent::Claude, &[], &ask);
    scene
        .decide(&because(Verdict::Reject, "Choose yourself."))
        .await;
    end(child).await.is_denied(
        Agent::Claude,
        "alice did not answer, and says: Choose yourself.",
    );
    // A grant is not kept, and the next question is asked again.
    let child = scene.start_hook(Agent::Claude, &[], &ask);
    let item = scene.item().await;
    let wide = permits(DecisionScope::Timebox, GrantMatch::Same);
    scene.alice.decide(&item, &wide).await.unwrap();
    left_to_the_agent(&end(child).await);
    let child = scene.start_hook(Agent::Claude, &[], &ask);
    scene.decide(&answered(&[&["SQLite"], &["Logs"]])).await;
    assert_eq!(end(child).await.code, 0);
    // Answers to another number of questions are not even signed.
    let child = scene.start_hook(Agent::Claude, &[], &ask);
    let item = scene.item().await;
    assert_eq!(artifact(&item)["payload"]["kind"], "question");
    let refused = scene.alice.decide(&item, &answered(&[&["SQLite"]])).await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("one answer for each")
    );
    scene
        .alice
        .decide(&item, &choice(Verdict::Reject))
        .await
        .unwrap();
    left_to_the_agent(&end(child).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_stays_with_the_agent_without_a_gateway_or_by_policy() {
    let scene = HookScene::start().await;
    let ask = scene.claude("AskUserQuestion", &two_questions());
    scene.policy("[allow]\ntools = ['read', 'internal', 'question']\n");
    let ran = scene.hook(Agent::Claude, &[], &ask).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    scene.policy("[allow]\ntools = ['read', 'internal']\n");
    // What its form does not explain is the agent's own affair.
    for odd in [
        json!({}),
        json!({ "questions": [] }),
        json!({ "questions": "x" }),
        json!({ "questions": [{ "question": 1 }] }),
        json!({ "questions": [{ "question": "x", "options": [1] }] }),
        json!({ "questions": [{ "question": "x", "options": [{ "label": " " }] }] }),
        json!({ "questions": vec![json!({ "question": "x" }); 17] }),
    ] {
        let ran = scene
            .hook(Agent::Claude, &[], &scene.claude("AskUserQuestion", &odd))
            .await;
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.as_str()),
            (0, "", ""),
            "{odd}"
        );
    }
    scene.nobody_was_asked().await;
    // Nothing else passes when the profile is missing.
    std::fs::remove_file(scene.own("bot.toml")).unwrap();
    left_to_the_agent(&scene.hook(Agent::Claude, &[], &ask).await);
    assert_eq!(
        scene
            .hook(Agent::Claude, &[], &scene.bash("make"))
            .await
            .code,
        2
    );
}
