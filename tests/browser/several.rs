//! Several requests at once: each is shown in full, and signed by itself.

use serde_json::json;

use super::page::Page;
use super::stage::{Bot, BrowserStage, Running};

/// The box of the entry that says this.
const BOX: &str = "
    const [wanted] = arguments;
    const rows = [...document.querySelectorAll('.request-row')];
    return rows.find((row) => row.innerText.includes(wanted))?.querySelector('.pick') ?? null;";

const SELECTED: &str = "return document.querySelectorAll('.pick :checked').length";

async fn pick(page: &Page, text: &str) {
    page.sees(text).await;
    let found = page.browser.session.locate(BOX, json!([text])).await;
    let found = found.unwrap().expect("a box");
    page.browser.session.click(&found).await.unwrap();
}

fn echo(bot: &Bot, timeout: &str, word: &str) -> Running {
    bot.begin(&["run", "--timeout", timeout, "--", "echo", word])
}

#[tokio::test(flavor = "multi_thread")]
async fn several_are_approved_one_after_another_and_never_what_did_not_open() {
    let (stage, bot, page) = BrowserStage::paired().await;
    let last = echo(&bot, "9m", "last");
    page.open("#/inbox").await;
    page.sees("echo last").await;
    let first = echo(&bot, "5m", "first");
    let second = echo(&bot, "7m", "second");
    page.sees("echo first").await;
    page.sees("echo second").await;
    let stranger = stage.cluster.enforcer("stranger").await;
    let id = crate::support::request_id();
    let sent = stranger.submit(&id, "alice", crate::support::sealed());
    sent.await.expect(202);
    page.sees("This request can’t be approved").await;

    page.press("Select").await;
    page.press("Select all").await;
    page.sees("4 selected").await;
    page.sees("1 request can only be rejected").await;
    page.press("Approve…").await;
    // The one that expires first comes first, and is complete.
    page.sees("Request 1 of 3").await;
    page.until(
        "its command is shown",
        "return document.querySelector('.terminal')?.innerText.includes('echo first')",
    )
    .await;
    page.press("Approve").await;
    page.sees("Request 2 of 3").await;
    page.sees("echo second").await;
    page.press("Skip").await;
    page.sees("Request 3 of 3").await;
    page.press("Approve").await;
    page.sees("2 of 3 decided.").await;
    page.sees("Skipped").await;
    first.end().await.expect(0);
    last.end().await.expect(0);

    page.press("Back to the inbox").await;
    page.sees("This request can’t be approved").await;
    page.open_request("echo second").await;
    page.approve().await;
    second.end().await.expect(0);
    // A selection does not survive: nothing is decided by an address.
    page.open("#/several/approve").await;
    page.sees("No requests are selected").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_ranges_select_and_one_reason_rejects_each() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    page.open("#/inbox").await;
    let running: Vec<_> = [
        ("5m", "one"),
        ("6m", "two"),
        ("7m", "three"),
        ("8m", "four"),
    ]
    .iter()
    .map(|(timeout, word)| echo(&bot, timeout, word))
    .collect();
    for word in ["one", "two", "three", "four"] {
        page.sees(&format!("echo {word}")).await;
    }
    // The second by its key, and from there to the last by a range.
    for key in ["j", "j", "x"] {
        page.key(key).await;
    }
    page.until("one is selected", &format!("{SELECTED} === 1"))
        .await;
    page.run(
        "const boxes = document.querySelectorAll('.pick input');
         boxes[3].dispatchEvent(new MouseEvent('click', { shiftKey: true, bubbles: true, cancelable: true }))",
    )
    .await;
    page.until("three are selected", &format!("{SELECTED} === 3"))
        .await;
    pick(&page, "echo three").await;
    page.until("two are left", &format!("{SELECTED} === 2"))
        .await;
    page.press("Reject…").await;
    page.sees("Request 1 of 2").await;
    page.fill("Reason for all of them (optional)", "Not on a Friday.")
        .await;
    page.press("Reject this one").await;
    page.sees("Request 2 of 2").await;
    page.press("Reject this one").await;
    page.sees("2 of 2 decided.").await;
    let mut running = running.into_iter();
    let [one, two, three, four] = std::array::from_fn(|_| running.next().unwrap());
    for rejected in [two, four] {
        let ran = rejected.end().await.expect(77);
        assert!(ran.err.contains("Not on a Friday."), "{}", ran.err);
    }
    for word in ["one", "three"] {
        page.open_request(&format!("echo {word}")).await;
        page.approve().await;
    }
    for approved in [one, three] {
        approved.end().await.expect(0);
    }
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_meanwhile_is_not_decided() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let first = echo(&bot, "5m", "withdrawn");
    let second = echo(&bot, "7m", "kept");
    page.open("#/inbox").await;
    pick(&page, "echo withdrawn").await;
    pick(&page, "echo kept").await;
    page.press("Approve…").await;
    page.sees("Request 1 of 2").await;
    first.interrupt();
    page.press("Next").await;
    page.sees("Request 2 of 2").await;
    page.press("Approve").await;
    page.sees("1 of 2 decided.").await;
    page.sees("Withdrawn").await;
    second.end().await.expect(0);
    assert_ne!(first.end().await.code, 0);
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_requests_of_an_agent_are_rejected_with_one_reason_and_it_is_paused() {
    let (stage, bot, mut page) = BrowserStage::paired().await;
    let other = stage.bot("other").await;
    other.pair(&page).await;
    let asked = ["one", "two"].map(|word| echo(&bot, "5m", word));
    let kept = echo(&other, "5m", "kept");
    page.open("#/inbox").await;
    page.sees("echo kept").await;
    pick(&page, "echo one").await;
    page.sees("echo two").await;
    page.press("Reject all from build machine…").await;
    page.sees("2 requests are waiting.").await;
    page.fill("Reason for all of them (optional)", "Stop.")
        .await;
    page.press("Reject 2 requests").await;
    page.sees("2 requests were rejected").await;
    for rejected in asked {
        let ran = rejected.end().await.expect(77);
        assert!(ran.err.contains("Stop."), "{}", ran.err);
    }
    // From the agent's own page as well; the other agent's request was left alone.
    // They never were online, and the console says so.
    page.may_lose_gateway();
    page.open("#/agents/other").await;
    page.press("Reject all its requests…").await;
    page.press("Also pause this agent for an hour").await;
    page.press("Reject 1 request").await;
    page.sees("1 request was rejected").await;
    kept.end().await.expect(77);
    page.sees("Paused from this device until").await;
    let denied = other.run(&["run", "--", "echo", "again"]).await.expect(77);
    assert!(
        denied.err.contains("paused by alice until 20"),
        "{}",
        denied.err
    );
    page.close().await;
}
