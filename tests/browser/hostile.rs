//! Text by which an agent tries to deceive or attack its reader: nothing of it runs, all of it is
//! seen, and the page stays usable.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::page::Page;
use super::stage::{Bot, BrowserStage, Running};

/// An address that must not be visited.
async fn trap() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

fn ask(bot: &Bot, kind: &str, content: &str) -> Running {
    bot.begin_with(&["ask", "--type", kind], content)
}

/// Nothing of a request has become an element that does something.
async fn is_inert(page: &Page) {
    let active = "main script, main iframe, main object, main embed, main img, main video, main base, main meta, main style, main math,
                  main a:not([href^=\"#/\"]), main [onclick], main [onerror], main [onload], main [srcdoc]";
    let found = page.run(&format!("return {{ ran: window.ran ?? null, active: document.querySelectorAll(`{active}`).length }}")).await;
    assert_eq!(found, json!({ "ran": null, "active": 0 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_and_nothing_is_hidden() {
    let stage = BrowserStage::start().await;
    let page = stage.page().await;
    let (listener, url) = trap().await;
    let invitation = stage.invitation("approver", "alice").await;
    page.join_first(&invitation, "<b>phone</b>").await;
    let bot = stage.bot("bot").await;
    let mut pairing = bot.begin(&["pair", "--label", "<img src=x onerror=window.ran=1>"]);
    let link = pairing.says("/#/pair/").await;
    page.pair(link.trim()).await;
    page.sees("Paired with <img src=x onerror=window.ran=1>")
        .await;
    pairing.end().await.expect(0);

    let html = format!(
        "<script>window.ran=1</script><img src=\"{url}/x\" onerror=window.ran=1><svg onload=window.ran=1><a href=javascript:window.ran=1>x</a><style>@import '{url}'</style><iframe srcdoc='<script>top.ran=1</script>'>"
    );
    let plan = format!(
        "# A plan\n\n{html}\n\n[a link](javascript:window.ran=1) ![a picture]({url}/y) <{url}/z>\n\n```html\n{html}\n```\n"
    );
    let patch = format!(
        "diff --git a/x b/x\n--- a/x\n+++ b/x{html}\n@@ -1 +1 @@ {html}\n-{html}\n+{html} new\n"
    );
    let command = format!("deploy {html}");
    let tool = json!({
        "kind": "tool", "tool": html, "__proto__": { "payload": "outer prototype" },
        "input": { "__proto__": { "polluted": "inner prototype" }, "constructor": html, "toString": [html], html.as_str(): null },
    });
    let tool = tool.to_string();
    let cases: [(&str, &str, &str, Vec<&str>); 4] = [
        (
            "plan",
            &plan,
            "A plan",
            vec![
                "<script>window.ran=1</script>",
                "javascript:window.ran=1",
                "srcdoc=",
            ],
        ),
        (
            "patch",
            &patch,
            "x<script>",
            vec!["<script>window.ran=1</script>", "new"],
        ),
        (
            "command",
            &command,
            "deploy <script>",
            vec!["<script>window.ran=1</script>"],
        ),
        (
            "task",
            &tool,
            "Tool call",
            vec![
                "inner prototype",
                "outer prototype",
                "constructor",
                "toString",
            ],
        ),
    ];
    for (kind, content, headline, shown) in cases {
        let _asking = ask(&bot, kind, content);
        page.open_request(headline).await;
        for text in shown {
            page.sees(text).await;
        }
        is_inert(&page).await;
        page.reject("<script>window.ran=1</script>").await;
        is_inert(&page).await;
    }
    page.open("#/history").await;
    page.sees("window.ran=1").await;
    is_inert(&page).await;
    let visited = tokio::time::timeout(std::time::Duration::ZERO, listener.accept()).await;
    assert!(visited.is_err(), "{visited:?}");
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_deceive_is_made_visible() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let words = [
        "echo",
        "a\u{202e}txt.exe",
        "p\u{430}ypal",
        "x\u{a0}y\u{200b}z\u{1b}[2J\rover",
    ];
    let _asking = bot.begin(&[&["run", "--"][..], &words].concat());
    page.open_request("echo").await;
    for shown in [
        "U+202E",
        "U+0430",
        "U+00A0",
        "U+200B",
        "U+001B",
        "U+000D",
        "Look closely",
    ] {
        page.sees(shown).await;
    }
    let hidden = page
        .run("return /[\\u202e\\u200b\\u001b]/.test(document.body.innerText)")
        .await;
    assert_eq!(hidden, false, "shown by name only");
    page.reject("\u{202e}yaw ton").await;
    page.sees("U+202E").await;

    let actions = [
        "ask",
        "--action",
        "approve:a:Appro\u{202e}ve",
        "--action",
        "reject:b:Reject\u{200b}",
    ];
    let _asking = bot.begin_with(&actions, "# Bidi\n\n\u{2067}reversed\u{2069}\u{feff}");
    page.open_request("Bidi").await;
    for shown in [
        "ApproU+202Eve",
        "RejectU+200B",
        "U+2067",
        "U+2069",
        "U+FEFF",
    ] {
        page.sees(shown).await;
    }
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lines_and_deep_values_are_shown_to_their_end() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let long = format!("echo {} the-very-end", "x".repeat(1 << 20));
    let patch = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+{long}\n");
    let mut deep = json!("the-very-end");
    for _ in 0..55 {
        deep = json!({ "deeper": deep });
    }
    let deep = json!({ "kind": "tool", "tool": "deep", "input": deep }).to_string();
    let list: Vec<Value> = (0..20_000).map(Value::from).collect();
    let wide = json!({ "kind": "tool", "tool": "wide", "input": { "list": list, "last": "the-very-end" } }).to_string();
    for (kind, content, kind_shown) in [
        ("command", &long, "Command"),
        ("plan", &long, "Plan"),
        ("patch", &patch, "Patch"),
        ("task", &deep, "Deep"),
        ("task", &wide, "Wide"),
    ] {
        let asking = ask(&bot, kind, content);
        page.open_request(kind_shown).await;
        if kind_shown == "Deep" {
            page.press("Unfold deeper").await;
        }
        // Only what is near the screen exists.
        let end = "
            const content = document.querySelector('.content, .plan')?.parentElement ?? document.body;
            window.scrollTo(0, scrollY + content.getBoundingClientRect().bottom - innerHeight);
            return document.querySelector('main').innerText.includes('the-very-end')";
        page.until(&format!("the end of the {kind} is shown"), end)
            .await;
        page.check_console().await;
        page.approve().await;
        asking.end().await.expect(0);
    }
    page.close().await;
}
