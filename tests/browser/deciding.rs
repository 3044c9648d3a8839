//! Joining, pairing, and deciding in all ways, up to what the asking command does.

use super::stage::BrowserStage;

const PATCH: &str = "\
diff --git a/src/main.rs b/src/main.rs
--- a/src/main.rs
+++ b/src/main.rs
@@ -1,3 +1,3 @@
 fn main() {
-    println!(\"old\");
+    println!(\"new\");
 }
";

#[tokio::test(flavor = "multi_thread")]
async fn who_joins_and_pairs_by_links_decides_what_an_agent_does() {
    let (_stage, bot, page) = BrowserStage::paired().await;

    let hello = bot.begin(&["run", "--", "echo", "hello"]);
    page.open_request("echo hello").await;
    page.approve().await;
    let ran = hello.end().await.expect(0);
    assert_eq!(ran.out, "hello\n");
    assert!(ran.err.contains("approved by alice"), "{}", ran.err);
    page.sees("Confirmed by the agent’s machine: it was allowed.")
        .await;

    let patch = bot.begin_with(&["ask", "--type", "patch"], PATCH);
    page.open_request("src/main.rs").await;
    page.sees("println!(\"new\")").await;
    page.reject("Not on a Friday: \u{201c}never\u{201d}.").await;
    let ran = patch.end().await.expect(77);
    assert_eq!(
        ran.json()["reason"],
        "Not on a Friday: \u{201c}never\u{201d}."
    );
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requested_actions_are_the_buttons() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let ask = [
        "ask",
        "--action",
        "approve:staging:To staging",
        "--action",
        "approve:production:To production",
        "--action",
        "reject:friday:Not today",
    ];
    let release = bot.begin_with(&ask, "# Release 1.2");
    page.open_request("Release 1.2").await;
    // The page's own word comes first, and a plain rejection is always possible.
    assert!(page.offers("Approve: To production").await);
    assert!(page.offers("Reject").await);
    for other in ["Approve", "Approve for longer…"] {
        assert!(!page.offers(other).await, "{other}");
    }
    page.press("Approve: To staging").await;
    page.ends_as("Approved").await;
    assert_eq!(release.end().await.expect(0).json()["actionId"], "staging");

    let release = bot.begin_with(&ask, "# Release 1.3");
    page.open_request("Release 1.3").await;
    page.press("Reject: Not today").await;
    page.fill("Reason (optional)", "On Monday.").await;
    page.press("Reject: Not today").await;
    page.ends_as("Rejected").await;
    let told = release.end().await.expect(77).json();
    assert_eq!(told["actionId"], "friday");
    assert_eq!(told["reason"], "On Monday.");
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_for_longer_is_used_without_asking_again() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let first = bot.begin(&["run", "--", "echo", "one"]);
    page.open_request("echo one").await;
    page.press("Approve for longer…").await;
    page.press("15 minutes").await;
    page.press("Commands of this kind").await;
    page.sees("Commands of the form echo one, for 15 minutes")
        .await;
    // The program stays the same, whatever follows.
    page.press("one").await;
    page.sees(
        "Permits, without asking you again: Commands of the form echo any word, for 15 minutes",
    )
    .await;
    page.press("Further words may follow").await;
    page.sees("Commands of the form echo any word and further words, for 15 minutes")
        .await;
    page.press("Approve").await;
    page.ends_as("Approved").await;
    let ran = first.end().await.expect(0);
    assert!(ran.err.contains("saved as a grant"), "{}", ran.err);
    for word in ["one", "two"] {
        let ran = bot.run(&["run", "--", "echo", word]).await.expect(0);
        assert_eq!(ran.out, format!("{word}\n"));
        assert!(ran.err.contains("allowed by alice"), "{}", ran.err);
    }
    // Each use is in the history.
    page.open("#/history").await;
    page.sees("Used 2 times according to the agent’s machine, last just now")
        .await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_alone_are_enough_to_decide() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let [first, second] = ["first", "second"].map(|word| bot.begin(&["run", "--", "echo", word]));
    page.open("#/inbox").await;
    page.sees("echo first").await;
    page.sees("echo second").await;
    let focus = "return document.activeElement?.innerText.includes";
    for key in ["k", "j", "k"] {
        page.key(key).await;
    }
    // Enter, as WebDriver spells it.
    let focused = page
        .run(&format!("{focus}('echo first') ? 'first' : 'second'"))
        .await;
    page.key("\u{e007}").await;
    page.until(
        "it can be decided",
        "return document.querySelector('.decision:not(.outcome, [inert])') !== null",
    )
    .await;
    page.key("a").await;
    page.ends_as("Approved").await;
    page.key("u").await;
    page.sees("Just ended").await;
    page.key("j").await;
    page.key("a").await;
    page.until(
        "it can be decided",
        "return document.querySelector('.decision:not(.outcome, [inert])') !== null",
    )
    .await;
    page.key("r").await;
    page.sees("Reject this request").await;
    // Into the reason, which has the focus, and not what the key does elsewhere.
    page.key("a").await;
    page.press("Reject").await;
    page.ends_as("Rejected").await;
    let (approved, rejected) = if focused == "first" {
        (first, second)
    } else {
        (second, first)
    };
    approved.end().await.expect(0);
    let ran = rejected.end().await.expect(77);
    assert!(ran.err.contains("alice rejected it: a"), "{}", ran.err);
    page.close().await;
}
