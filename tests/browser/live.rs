//! The page stays true: requests that are withdrawn or expire leave it, and it survives a node that
//! dies.

use std::time::Duration;

use serde_json::json;

use super::chromium::Chromium;
use super::page::Page;
use super::stage::{Bot, BrowserStage, invite};
use crate::support::Cluster;
use crate::support::fleet::Fleet;
use crate::support::haproxy::Balancer;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_withdrawn_or_expires_leaves() {
    let (stage, bot, page) = BrowserStage::paired().await;
    let [shown, listed] = ["shown", "listed"].map(|word| bot.begin(&["run", "--", "echo", word]));
    page.open_request("echo listed").await;
    page.open_request("echo shown").await;
    shown.interrupt();
    page.ends_as("Withdrawn").await;
    assert!(!page.offers("Approve").await);
    page.open("#/inbox").await;
    page.sees("1 request waiting").await;
    listed.interrupt();
    page.sees("You’re all caught up").await;
    for running in [shown, listed] {
        running.end().await.expect(130);
    }

    let late = bot.begin(&["run", "--", "echo", "late"]);
    page.open_request("echo late").await;
    stage.cluster.pass(Duration::from_secs(11 * 60));
    page.ends_as("Expired").await;
    page.open("#/inbox").await;
    page.sees("You’re all caught up").await;
    late.end().await.expect(77);
    page.close().await;
}

/// Alice's page at an address of a site of several nodes, and an agent at others.
struct Site {
    _cluster: Cluster,
    bot: Bot,
    page: Page,
    _directory: tempfile::TempDir,
}

impl Site {
    async fn open(cluster: Cluster, url: &str, gateways: &[String]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let admin = cluster.admin().await;
        let [browser] = Chromium::start().await;
        let mut page = Page::at(browser, url);
        page.join_first(
            &page.here(&invite(&admin, "approver", "alice").await),
            "phone",
        )
        .await;
        let bot = Bot::new(directory.path(), "bot");
        let invitation = invite(&admin, "enforcer", "bot").await;
        let mut join = vec!["join", &invitation];
        for gateway in gateways {
            join.extend(["--gateway", gateway]);
        }
        bot.run(&join).await.expect(0);
        bot.pair(&page).await;
        page.may_lose_gateway();
        Self {
            _cluster: cluster,
            bot,
            page,
            _directory: directory,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_under_the_page_is_survived() {
    let cluster = Cluster::start(1).await;
    let mut fleet = Fleet::start(&cluster.database.url, 2);
    let url = fleet.nodes[0].url.clone();
    let site = Site::open(cluster, &url, &fleet.urls()).await;
    let (bot, page) = (&site.bot, &site.page);
    let waiting = bot.begin(&["run", "--", "echo", "before"]);
    page.open_request("echo before").await;
    page.until("the page is kept", "return (await (await caches.open('countersign-page')).keys()).some(({ url }) => url.endsWith('/'))").await;
    fleet.kill(0);
    page.sees("Offline. This page may be out of date").await;
    // It opens all the same, with what this browser knows.
    page.run("location.reload()").await;
    page.sees("Offline. This page may be out of date").await;
    page.open("#/agents").await;
    page.sees("build machine").await;
    // The agent goes on at the other node meanwhile.
    let missed = bot.begin(&["run", "--", "echo", "meanwhile"]);
    fleet.restart(0);
    page.no_longer_sees("Offline.").await;
    for (text, running) in [("before", waiting), ("meanwhile", missed)] {
        page.open_request(text).await;
        page.approve().await;
        assert_eq!(running.end().await.expect(0).out, format!("{text}\n"));
    }
    site.page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_balancer_the_page_goes_on_at_another_node() {
    let cluster = Cluster::start(1).await;
    let settings = [
        ("TLS__MODE", "upstream"),
        ("TLS__PROXIES", "[\"127.0.0.1\"]"),
    ];
    let hosts = ["127.0.0.5", "127.0.0.6"];
    let mut fleet = Fleet::start_alike(&cluster.database.url, &hosts, &settings);
    let balancer = Balancer::start(&fleet.urls(), &[]).await;
    let own = cluster.urls();
    let site = Site::open(cluster, &balancer.url, &own).await;
    let (bot, page) = (&site.bot, &site.page);
    for node in 0..hosts.len() {
        let [before, after] = [format!("before-{node}"), format!("after-{node}")];
        let running = bot.begin(&["run", "--", "echo", &before]);
        page.open_request(&before).await;
        fleet.kill(node);
        page.approve().await;
        running.end().await.expect(0);
        let running = bot.begin(&["run", "--", "echo", &after]);
        page.open_request(&after).await;
        page.approve().await;
        running.end().await.expect(0);
        fleet.restart(node);
        balancer.sees(hosts.len()).await;
    }
    site.page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_files_another_node_does_not_have_loads_again_until_it_has_them() {
    let stage = BrowserStage::start().await;
    let mut page = stage.page().await;
    page.may_lose_gateway();
    let session = &page.browser.session;
    session.devtools("Network.enable", json!({})).await;
    let missing = json!({ "urls": ["*/core/approver.js"] });
    session.devtools("Network.setBlockedURLs", missing).await;
    page.open("#/welcome").await;
    let tries = "return Number(sessionStorage.getItem('countersign-reloads')) > 1";
    page.until("two attempts", tries).await;
    session
        .devtools("Network.setBlockedURLs", json!({ "urls": [] }))
        .await;
    page.sees("Only your signature counts").await;
    let tries = "return sessionStorage.getItem('countersign-reloads') === null";
    page.until("the attempts are forgotten", tries).await;
    page.close().await;
}
