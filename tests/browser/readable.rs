//! A request says first what it would do; its content is shown by kind, complete.

use serde_json::{Value, json};

use super::stage::{Bot, BrowserStage, Running};

const TITLES: &str = "return [...document.querySelectorAll('.request-row .entry-title')].map((one) => one.innerText)";

fn ask(bot: &Bot, kind: &str, timeout: &str, payload: &Value) -> Running {
    bot.begin_with(
        &["ask", "--type", kind, "--timeout", timeout],
        &payload.to_string(),
    )
}

fn payloads() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        (
            "command",
            "Run terraform apply in infra",
            json!({ "kind": "command", "argv": ["terraform", "apply"], "directory": "/srv/infra" }),
        ),
        (
            "command",
            "Run git push --force | tee log in shop",
            json!({
                "kind": "command", "agent": "claude", "tool": "Bash", "directory": "/work/shop",
                "command": "git push --force | tee log",
                "options": { "description": "Publish the\u{202e} fix", "timeout": 5 },
            }),
        ),
        (
            "patch",
            "Edit src/main.rs and 1 more file",
            json!({
                "kind": "patch", "agent": "codex", "tool": "apply_patch", "directory": "/work",
                "patch": "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1 +1 @@\n-let a = 1;\n+let a = \"two\"; // why\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-a\n+b\n",
                "files": [{ "path": "/work/src/main.rs", "sha256": "ab".repeat(32) }],
            }),
        ),
        (
            "command",
            "Fetch https://example.com/a",
            json!({ "kind": "tool", "agent": "claude", "tool": "WebFetch", "input": { "url": "https://example.com/a", "prompt": "Read it" } }),
        ),
        (
            "command",
            "Refund €42.00 to order 7 (stripe)",
            json!({
                "kind": "tool", "agent": "gemini", "tool": "create_refund", "mcp": { "server": "stripe", "tool": "create_refund" },
                "input": { "order": 7, "amount": "42.00", "currency": "eur", "lines": [1, 2], "notes": { "long": "x".repeat(90), "inner": "the inner note" } },
            }),
        ),
        (
            "task",
            "Do this task: Clean up …",
            json!({ "kind": "plan", "text": "# Clean up\n\n| what | when |\n|---|--:|\n| logs | now |\n\n- [x] asked\n- [ ] done\n\n~~never~~" }),
        ),
        (
            "checkpoint",
            "Continue from a checkpoint",
            json!({ "step": 3 }),
        ),
        (
            "checkpoint",
            "Ask you: Which database?",
            json!({
                "kind": "question", "agent": "claude", "tool": "AskUserQuestion",
                "questions": [{ "question": "Which database?", "header": "Database", "multiSelect": false, "options": [
                    { "label": "PostgreSQL", "description": "In use already" }, { "label": "SQLite" },
                ] }],
            }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_says_what_would_happen_in_order_of_urgency() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    page.open("#/inbox").await;
    let asked = payloads();
    // The last one expires first.
    let asking = asked
        .iter()
        .enumerate()
        .rev()
        .map(|(at, (kind, _, payload))| ask(&bot, kind, &format!("{}m", 20 - at), payload));
    let _asking: Vec<_> = asking.collect();
    let titles: Vec<&str> = asked.iter().rev().map(|(_, title, _)| *title).collect();
    let expected = json!(titles).to_string();
    page.until(
        "sentences, the most urgent first",
        &format!(
            "{} && JSON.stringify({}) === JSON.stringify({expected})",
            "return true",
            &TITLES[7..]
        ),
    )
    .await;

    for (text, cues) in [
        ("git push", "Destructive Leaves this machine"),
        ("terraform apply", "Leaves this machine"),
        ("Fetch https", "Leaves this machine"),
        ("src/main.rs", ""),
    ] {
        let script = format!(
            "const row = [...document.querySelectorAll('.request-row')].find((one) => one.innerText.includes('{text}'));
             return [...row.querySelectorAll('.chip')].map((one) => one.innerText).join(' ')"
        );
        assert_eq!(page.run(&script).await, cues, "{text}");
    }
    page.sees("Claude Code on build machine").await;
    page.sees("Gemini CLI on build machine").await;

    let choose = |label: &str, value: &str| {
        format!(
            "const one = document.querySelector('select[aria-label={label}]');
             one.value = [...one.options].find((option) => option.text.startsWith('{value}')).value;
             one.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        )
    };
    page.run(&choose("Agent", "Claude Code")).await;
    page.no_longer_sees("Refund").await;
    page.sees("Fetch https://example.com/a").await;
    page.run(&choose("Kind", "Command")).await;
    page.no_longer_sees("Fetch https").await;
    page.sees("git push").await;
    page.run(&choose("Kind", "All")).await;
    page.run(&choose("Agent", "All")).await;
    page.sees("Refund").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_is_shown_complete_with_the_agents_words_apart() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let asked = payloads();
    let asking = asked
        .iter()
        .map(|(kind, _, payload)| ask(&bot, kind, "9m", payload));
    let _asking: Vec<_> = asking.collect();
    let text = async |selector: &str| {
        let script = format!(
            "return [...document.querySelectorAll('{selector}')].map((one) => one.innerText)"
        );
        page.run(&script).await
    };

    page.open_request("git push").await;
    assert_eq!(
        text("h1").await,
        json!(["Run git push --force | tee log in shop"])
    );
    // What the agent says stands apart, and cannot hide anything.
    assert_eq!(
        text(".agent-says blockquote").await,
        json!(["Publish theU+202E fix"])
    );
    page.sees("The agent says").await;
    page.sees("a forced push overwrites commits on the server")
        .await;
    page.sees("git push sends commits to a server").await;
    assert_eq!(text(".part-program").await, json!(["git", "tee"]));
    assert_eq!(text(".part-operator").await, json!(["|"]));
    assert_eq!(text(".part-option").await, json!(["--force"]));
    page.sees("{\"timeout\":5}").await;
    // Ids and hashes are there for those who need them.
    assert!(!page.text().await.contains("SHA-256"));
    page.press("Details").await;
    page.sees("SHA-256").await;

    page.open_request("src/main.rs").await;
    page.until(
        "colours",
        "return document.querySelector('.token-keyword')?.innerText === 'let'",
    )
    .await;
    assert_eq!(text(".token-comment").await, json!(["// why"]));
    page.press("Details").await;
    page.sees(&"ab".repeat(32)).await;

    page.open_request("Refund").await;
    for row in ["amount: 42.00", "order: 7", "lines: [1,2]"] {
        page.sees(row).await;
    }
    assert!(!page.text().await.contains("the inner note"));
    page.press("Unfold notes").await;
    page.sees("the inner note").await;

    page.open_request("Clean up").await;
    assert_eq!(text(".plan td").await, json!(["logs", "now"]));
    assert_eq!(text(".plan s").await, json!(["never"]));
    assert_eq!(text(".task-box").await.as_array().unwrap().len(), 2);

    page.open_request("Continue from").await;
    page.sees("step: 3").await;

    page.open_request("Which database").await;
    for shown in ["PostgreSQL", "In use already", "SQLite", "Something else"] {
        page.sees(shown).await;
    }
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buttons_that_do_nothing_yet_look_so() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let _asking = bot.begin(&["run", "--", "echo", "hello"]);
    page.open("#/inbox").await;
    page.choose("echo hello").await;
    let looks = page.until(
        "the buttons are there",
        "const bar = document.querySelector('.decision');
         if (!bar) return null;
         bar.inert = true;
         const styles = getComputedStyle(bar.querySelector('.good'));
         return styles.opacity",
    );
    let looks = looks.await;
    assert!(
        looks.as_str().unwrap().parse::<f64>().unwrap() < 1.0,
        "{looks}"
    );
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_says_where_in_which_session_and_when_it_was_asked() {
    let (stage, bot, page) = BrowserStage::paired().await;
    let project = stage.directory.path().join("shop");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    let event = json!({
        "session_id": "s-1", "cwd": project, "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": { "command": "make deploy" },
    });
    let asking = bot.begin_with(&["hook", "claude"], &event.to_string());
    page.open_request("make deploy").await;
    page.press("Details").await;
    let session = page.fact("Session").await;
    page.open("#/inbox").await;
    let parts = "
        const parts = [...document.querySelectorAll('.request-row .entry-line > span')];
        return parts.length > 0 && parts.map((one) => one.innerText)";
    let parts = page.until("the row", parts).await;
    assert_eq!(parts[1], "Claude Code on build machine");
    assert_eq!(parts[2], "shop");
    let end = &session[session.len() - 4..];
    assert_eq!(parts[3], format!("session …{end}"));
    let age = parts[4].as_str().unwrap();
    assert!(age == "just now" || age.ends_with("min ago"), "{age}");
    page.open_request("make deploy").await;
    page.approve().await;
    asking.end().await.expect(0);
    page.close().await;
}
