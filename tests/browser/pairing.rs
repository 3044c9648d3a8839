//! Pairing by a code that is typed: both screens show the same digits, and nothing is pinned before
//! both people have said so.

use super::page::Page;
use super::stage::{Bot, BrowserStage, Terminal};

/// Begins a pairing in a terminal and types its code into the page. The digits of both.
async fn typed(bot: &Bot, page: &Page) -> (Terminal, String, String) {
    let mut terminal = bot.terminal("countersign pair");
    let line = terminal.says("compare the digits on both screens: ").await;
    let code = line.trim().rsplit(' ').next().unwrap().to_owned();
    page.open("#/agents").await;
    page.press("Pair an agent").await;
    page.press("Short code").await;
    page.fill("Short code", &code).await;
    page.fill("Who works with this agent? (optional)", "dave")
        .await;
    page.press("Pair").await;
    page.sees("Compare these digits").await;
    let shown = page.run("return [...document.querySelectorAll('.digits span')].map((one) => one.innerText).join(' ')").await;
    terminal.says("Compare all fifteen digits").await;
    let digits = terminal
        .says_line(|line| {
            line.trim().len() == 17
                && line
                    .trim()
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b' ')
        })
        .await;
    (
        terminal,
        shown.as_str().unwrap().to_owned(),
        digits.trim().to_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_code_pairs_after_both_have_compared_the_digits() {
    let stage = BrowserStage::start().await;
    let page = stage.page().await;
    let invitation = stage.invitation("approver", "alice").await;
    page.join_first(&invitation, "phone").await;
    let bot = stage.bot("bot").await;

    let (mut terminal, shown, digits) = typed(&bot, &page).await;
    assert_eq!(shown, digits);
    terminal.asks("[yes/no]").await;
    terminal.types("no\n").await;
    page.press("They don’t match").await;
    page.sees("Not paired.").await;
    assert_eq!(terminal.end().await.code, 77);
    assert_eq!(
        bot.run(&["pairings", "--json"]).await.expect(0).json(),
        serde_json::json!([])
    );

    let (mut terminal, shown, digits) = typed(&bot, &page).await;
    assert_eq!(shown, digits);
    terminal.asks("[yes/no]").await;
    terminal.types("yes\n").await;
    page.press("They match").await;
    page.sees("Paired with").await;
    assert_eq!(terminal.end().await.code, 0);
    let paired = bot.run(&["pairings", "--json"]).await.expect(0).json();
    assert_eq!(paired[0]["operators"], serde_json::json!(["dave"]));
    let hello = bot.begin(&["run", "--", "echo", "hello"]);
    page.open_request("echo hello").await;
    page.approve().await;
    hello.end().await.expect(0);
    page.close().await;
}
