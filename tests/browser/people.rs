//! Two of three people approve a command: alice and bob in browsers, carol in a terminal. The third
//! request is withdrawn then, and the receipt verifies where there is no profile.

use super::PATIENCE;
use super::chromium::Chromium;
use super::page::Page;
use super::stage::{Bot, BrowserStage, Ran, Terminal};
use crate::support::until;

const RULE: &str = "One of 2 approvals, from alice, bob and carol";
const WAITS: &str = "The agent waits until enough others have approved.";
const CONFIRMED: &str = "Confirmed by the agent’s machine: it was allowed.";

struct ApprovalStage {
    stage: BrowserStage,
    bot: Bot,
    alice: Page,
    bob: Page,
    carol: Bot,
    /// The approver of each device, as their own devices say.
    devices: Vec<String>,
}

impl ApprovalStage {
    async fn start() -> Self {
        let stage = BrowserStage::start().await;
        let [alice, bob] = Chromium::start().await;
        let [alice, bob] = [alice, bob].map(|browser| Page::at(browser, &stage.url()));
        let bot = stage.pair(&alice).await;
        let invitation = stage.invitation("approver", "bob").await;
        bob.join_first(&invitation, "laptop").await;
        bot.pair(&bob).await;
        let carol = Bot::new(stage.directory.path(), "carol");
        carol
            .join(&stage.invitation("approver", "carol").await)
            .await;
        let mut pairing = bot.begin(&["pair"]);
        let link = pairing.says("/#/pair/").await;
        carol.run(&["pair", link.trim()]).await.expect(0);
        pairing.end().await.expect(0);

        let mut devices = Vec::new();
        for (name, page) in [("alice", &alice), ("bob", &bob)] {
            page.open("#/devices").await;
            let shown = "return document.querySelector('.entry-line code')?.textContent ?? null";
            let id = page.until("the id of its device", shown).await;
            devices.push(format!("{name}={}", id.as_str().unwrap()));
        }
        let listed = carol.run(&["devices", "--json"]).await.expect(0).json();
        devices.push(format!("carol={}", listed[0]["deviceId"].as_str().unwrap()));
        Self {
            stage,
            bot,
            alice,
            bob,
            carol,
            devices,
        }
    }

    fn saved(&self) -> String {
        let file = self.stage.directory.path().join("receipt.json");
        file.to_str().unwrap().to_owned()
    }

    /// The command, in a terminal that shows what is still needed.
    fn release(&self) -> Terminal {
        self.bot.terminal(&format!(
            "countersign run --approvals 2 --from alice,bob,carol --save {} -- echo released",
            self.saved()
        ))
    }

    async fn inbox_of_carol(&self) -> usize {
        let listed = self.carol.run(&["inbox", "--json"]).await.expect(0).json();
        listed.as_array().unwrap().len()
    }

    /// Verifies the receipt in a directory without a profile, by the devices of these people.
    async fn verify(&self, names: &[&str]) -> Ran {
        let empty = tempfile::tempdir().unwrap();
        let saved = self.saved();
        let mut verify = vec!["verify", &saved, "--json", "--approvals", "2"];
        for device in &self.devices {
            let (name, _) = device.split_once('=').unwrap();
            if names.contains(&name) {
                verify.extend(["--device", device]);
            }
        }
        Bot::new(empty.path(), "nobody").run(&verify).await
    }

    async fn is_proven_by(&self, names: [&str; 2]) {
        let verified = self.verify(&names).await.expect(0).json();
        assert_eq!(verified["outcome"], "allowed");
        assert_eq!(verified["approverIds"], serde_json::json!(names));
        self.verify(&names[..1]).await.expect(77);
    }

    async fn close(self) {
        self.alice.close().await;
        self.bob.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_approve_in_browsers_and_the_terminal_is_no_longer_asked() {
    let stage = ApprovalStage::start().await;
    let mut running = stage.release();
    running.asks("2 approvals from alice, bob, carol").await;
    until("carol is asked too", PATIENCE, async || {
        stage.inbox_of_carol().await == 1
    })
    .await;
    stage.alice.open_request("echo released").await;
    stage.alice.sees(RULE).await;
    stage.alice.approve().await;
    stage.alice.sees(WAITS).await;
    running
        .asks("1 approval from bob, carol (alice approved)")
        .await;
    stage.bob.open_request("echo released").await;
    stage.bob.sees(RULE).await;
    stage.bob.approve().await;
    let ran = running.end().await.expect(0);
    assert!(ran.out.contains("approved by alice, bob"), "{}", ran.out);
    assert!(ran.out.contains("released\r\n"), "{}", ran.out);
    for page in [&stage.alice, &stage.bob] {
        page.sees(CONFIRMED).await;
    }
    assert_eq!(stage.inbox_of_carol().await, 0);
    let late = stage.carol.run(&["approve"]).await;
    assert_ne!(late.code, 0, "{late:?}");
    stage.is_proven_by(["alice", "bob"]).await;
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_and_a_terminal_approve_and_the_other_browser_is_no_longer_asked() {
    let stage = ApprovalStage::start().await;
    stage.bob.open("#/inbox").await;
    let mut running = stage.release();
    stage.bob.sees("echo released").await;
    until("carol is asked", PATIENCE, async || {
        stage.inbox_of_carol().await == 1
    })
    .await;
    let mut approving = stage.carol.terminal("countersign approve --wait 1s");
    approving.says(RULE).await;
    approving.asks("[y/N]").await;
    approving.types("yes\n").await;
    let approved = approving.end().await;
    assert!(
        approved.out.contains("has not confirmed it yet"),
        "{approved:?}"
    );
    running
        .asks("1 approval from alice, bob (carol approved)")
        .await;
    stage.alice.open_request("echo released").await;
    stage.alice.sees(RULE).await;
    stage.alice.approve().await;
    let ran = running.end().await.expect(0);
    assert!(ran.out.contains("approved by alice, carol"), "{}", ran.out);
    assert!(ran.out.contains("released\r\n"), "{}", ran.out);
    stage.alice.sees(CONFIRMED).await;
    stage.bob.sees("You’re all caught up").await;
    stage.is_proven_by(["alice", "carol"]).await;
    stage.close().await;
}
