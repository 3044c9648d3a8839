//! An agent's questions, answered on the page.

use serde_json::{Value, json};

use super::stage::BrowserStage;

fn event(questions: &Value) -> String {
    json!({
        "session_id": "s", "cwd": "/tmp", "hook_event_name": "PreToolUse",
        "tool_name": "AskUserQuestion", "tool_input": { "questions": questions },
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_shown_with_their_choices_and_answered() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let questions = json!([
        {
            "question": "Which database should it use?", "header": "Database", "multiSelect": false,
            "options": [
                { "label": "PostgreSQL", "description": "On a server", "preview": "create table" },
                { "label": "SQLite", "description": "In a file" },
            ],
        },
        {
            "question": "Which features?", "header": "Features", "multiSelect": true,
            "options": [{ "label": "Sign-in", "description": "a" }, { "label": "Logs", "description": "b" }],
        },
        { "question": "Anything else?", "header": "Rest", "multiSelect": false },
    ]);
    let hook = bot.begin_with(&["hook", "claude"], &event(&questions));
    page.open_request("Which database should it use?").await;
    for text in [
        "Question",
        "Database",
        "On a server",
        "create table",
        "You can choose more than one.",
    ] {
        page.sees(text).await;
    }
    assert!(!page.offers("Approve").await && !page.offers("Reject").await);
    page.press("SQLite In a file").await;
    page.press("Send answer").await;
    page.sees("Answer every question first.").await;
    page.press("Sign-in a").await;
    page.press("Logs b").await;
    let write = |at: usize, text: &str| {
        format!(
            "const it = document.querySelectorAll('.question-form textarea')[{at}]; it.value = {}; \
             it.dispatchEvent(new Event('input', {{ bubbles: true }}))",
            json!(text)
        )
    };
    page.run(&write(1, "Dark mode <b>\u{202e}</b>")).await;
    page.run(&write(2, "No.")).await;
    page.press("Send answer").await;
    page.ends_as("Answered").await;
    let told = hook.end().await.expect(0).json();
    let answers = &told["hookSpecificOutput"]["updatedInput"]["answers"];
    let expected = json!({
        "Which database should it use?": "SQLite",
        "Which features?": "Sign-in, Logs, Dark mode <b>\u{202e}</b>",
        "Anything else?": "No.",
    });
    assert_eq!(answers, &expected);
    let disabled =
        "return [...document.querySelectorAll('.question-form')].every((one) => one.disabled)";
    assert_eq!(page.run(disabled).await, true);

    // Left to the agent, with and without words.
    for (words, code) in [("", 0), ("Choose yourself.", 2)] {
        let mut question = questions[0].clone();
        question["question"] = format!("And {code}?").into();
        let hook = bot.begin_with(&["hook", "claude"], &event(&json!([question])));
        page.open_request(&format!("And {code}?")).await;
        page.press("Don’t answer").await;
        page.sees("it asks in its own dialog").await;
        page.fill("Reason (optional)", words).await;
        page.press("Don’t answer").await;
        page.ends_as("Not answered").await;
        let ran = hook.end().await.expect(code);
        assert!(ran.err.contains(words), "{}", ran.err);
    }

    page.open("#/history").await;
    let ends = "
        const chips = [...document.querySelectorAll('main .list .entry-side .chip')];
        return chips.length === 3 && chips.map((one) => one.innerText)";
    let ends = page.until("three ends", ends).await;
    assert_eq!(ends, json!(["Not answered", "Not answered", "Answered"]));
    page.close().await;
}
