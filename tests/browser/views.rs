//! Pictures of every view, in `target/page`: for phone and desktop, light and dark. No view is
//! wider than the screen.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::page::Page;
use super::stage::{Bot, BrowserStage, Running};

const PATCH: &str = include_str!("views/example.patch");
const PLAN: &str = include_str!("views/plan.md");

/// Once it is painted anew, with every colour where it goes.
const PAINTED: &str = "document.getAnimations().filter((it) => it.effect.getComputedTiming().endTime !== Infinity).forEach((it) => it.finish()); return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";

struct Album {
    directory: PathBuf,
    page: Page,
}

impl Album {
    /// Keeps the current view in all sizes and colours.
    async fn keep(&self, name: &str) {
        for (size, width, height) in [("phone", 390, 844), ("desktop", 1280, 900)] {
            let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone" });
            self.page
                .browser
                .session
                .devtools("Emulation.setDeviceMetricsOverride", metrics)
                .await;
            for colours in ["light", "dark"] {
                let media = json!({ "features": [
                    { "name": "prefers-color-scheme", "value": colours },
                    // No colour is half way from one to another.
                    { "name": "prefers-reduced-motion", "value": "reduce" },
                ] });
                self.page
                    .browser
                    .session
                    .devtools("Emulation.setEmulatedMedia", media)
                    .await;
                // A change of colours begins with the first frame.
                self.page.run(PAINTED).await;
                self.page.run(PAINTED).await;
                let file = self.directory.join(format!("{name}-{size}-{colours}.png"));
                std::fs::write(file, self.page.picture().await).unwrap();
            }
            let wide = self
                .page
                .run("return document.documentElement.scrollWidth > innerWidth")
                .await;
            assert_eq!(wide, false, "{name} is wider than {width} pixels");
        }
    }

    async fn request(&self, name: &str, headline: &str) {
        self.page.open_request(headline).await;
        self.keep(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_is_pictured() {
    let stage = BrowserStage::start().await;
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("page");
    std::fs::create_dir_all(&directory).unwrap();
    let page = stage.page().await;
    let album = Album { directory, page };
    let page = &album.page;

    page.open("#/").await;
    page.sees("Decide what your agents may do").await;
    album.keep("welcome").await;
    let invitation = stage.invitation("approver", "alice").await;
    page.open(&invitation).await;
    page.sees("Device name").await;
    album.keep("join").await;
    page.join_first(&invitation, "phone").await;
    page.no_longer_sees("You’ve joined").await;
    album.keep("inbox-new").await;
    page.open("#/pair").await;
    album.keep("pair").await;
    let bot = stage.bot("bot").await;
    bot.pair(page).await;
    album.keep("paired").await;
    page.open("#/inbox").await;
    page.sees("You’re all caught up").await;
    album.keep("inbox-empty").await;

    let _asking = ask_everything(&bot);
    let stranger = stage.cluster.enforcer("stranger").await;
    stranger
        .submit(
            &crate::support::request_id(),
            "alice",
            crate::support::sealed(),
        )
        .await
        .expect(202);
    page.sees("6 requests waiting").await;
    album.keep("inbox").await;
    album.request("request-command", "terraform").await;
    page.press("Reject").await;
    page.sees("Reject this request").await;
    album.keep("reject").await;
    page.press("Cancel").await;
    page.press("Approve for longer…").await;
    page.press("Commands of this kind").await;
    album.keep("approve-longer").await;
    page.press("Cancel").await;
    page.approve().await;
    album.keep("approved").await;
    album.request("request-patch", "src/lib.rs").await;
    page.press("Side by side").await;
    album.keep("request-patch-side-by-side").await;
    album.request("request-plan", "Move the billing").await;
    album.request("request-tool", "Create issue").await;
    album.request("request-actions", "Release").await;
    album
        .request("request-unreadable", "This request can’t be approved")
        .await;

    for (address, name, shown) in [
        ("#/agents", "agents", "build machine"),
        ("#/agents/bot", "agent", "Message this agent"),
        ("#/history", "history", "terraform"),
        ("#/devices", "devices", "This device"),
        ("#/device", "device-add", "Waiting for the new device"),
        ("#/settings", "settings", "Appearance"),
        ("#/nowhere", "no-such-page", "Page not found"),
    ] {
        page.open(address).await;
        page.sees(shown).await;
        album.keep(name).await;
    }
    album.page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_request_stands_in_the_middle_of_a_wide_screen() {
    let (_stage, _bot, page) = BrowserStage::paired().await;
    let metrics = json!({ "width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false });
    page.browser
        .session
        .devtools("Emulation.setDeviceMetricsOverride", metrics)
        .await;
    page.open("#/request/nothing").await;
    page.sees("This request is closed").await;
    let middles = page
        .run(
            "const middle = (selector) => {
                 const { left, right } = document.querySelector(selector).getBoundingClientRect();
                 return (left + right) / 2;
             };
             return [innerWidth, middle('main'), middle('main .empty')]",
        )
        .await;
    assert_eq!(middles[0], 1280);
    let [main, card] = [1_usize, 2].map(|at| middles[at].as_f64().unwrap());
    assert!((main - card).abs() <= 1.0, "{main} and {card}");
    page.close().await;
}

fn ask_everything(bot: &Bot) -> Vec<Running> {
    let tool = json!({
        "kind": "tool", "tool": "mcp__github__create_issue",
        "input": { "repository": "acme/widgets", "title": "Flaky test", "labels": ["bug", "ci"], "assignees": [], "draft": false, "milestone": 7 },
    });
    let release = [
        "ask",
        "--action",
        "approve:staging:To staging",
        "--action",
        "approve:production:To production",
        "--action",
        "reject:no:Not today",
    ];
    vec![
        bot.begin_with(&["ask", "--type", "command"], &json!({
            "kind": "command", "argv": ["terraform", "apply", "-auto-approve", "-target=module.web"],
            "program": "/usr/bin/terraform", "directory": "/srv/infrastructure",
        }).to_string()),
        bot.begin_with(&["ask", "--type", "patch"], PATCH),
        bot.begin_with(&["ask", "--type", "plan"], PLAN),
        bot.begin_with(&["ask", "--type", "task"], &tool.to_string()),
        bot.begin_with(&release, "# Release 1.2\n\nEverything is tagged and tested."),
    ]
}
