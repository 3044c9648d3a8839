//! The first five minutes of the README in a browser: the link that `countersign dev` prints, and
//! the one that the first request prints.

use super::PATIENCE;
use super::chromium::Chromium;
use super::page::Page;
use super::stage::Terminal;
use crate::support::process::{Process, Signal, countersign, signal};
use crate::support::until;

#[tokio::test(flavor = "multi_thread")]
async fn the_first_five_minutes_of_the_readme_in_a_browser() {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once("## The first five minutes").unwrap();
    let command = "countersign run -- echo hello";
    let (paragraph, _) = section
        .split_once("Everything works in terminals too.")
        .unwrap();
    assert!(paragraph.contains(&format!("$ {command}\n")), "{paragraph}");

    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    let data = directory.path().join("data");
    let file = directory.path().join("ready.json");
    let listen = ["dev", "--listen", "127.0.0.1:0", "--ready-file"];
    let mut dev = Process::start(
        countersign()
            .env("XDG_CONFIG_HOME", &config)
            .env("XDG_DATA_HOME", &data)
            .args(listen)
            .arg(&file),
    );
    let (dev, ready) = tokio::task::spawn_blocking(move || {
        let ready = dev.await_json(&file);
        (dev, ready)
    })
    .await
    .unwrap();
    let link = ready["invitation"].as_str().unwrap();

    let [browser] = Chromium::start().await;
    let page = Page::at(browser, ready["nodes"][0].as_str().unwrap());
    page.open(link).await;
    page.press("Join").await;
    page.sees("Pair your first agent").await;
    let mut agent = Terminal::open(&config, "default", command);
    let pairing = agent
        .says_line(|line| line.trim().starts_with(&page.url))
        .await;
    page.pair(pairing.trim()).await;
    page.press("Go to the inbox").await;
    page.choose("echo hello").await;
    page.approve().await;
    let ran = agent.end().await.expect(0);
    assert!(
        ran.out.lines().any(|line| line.trim_end() == "hello"),
        "{}",
        ran.out
    );

    // Then the part for terminals, which the browser adds as a device. It knows the agent already.
    let join = format!(
        "env XDG_DATA_HOME='{}' sh -c 'countersign join \"$(countersign invite me)\"'",
        data.display()
    );
    assert!(section.contains("$ countersign join \"$(countersign invite me)\"\n"));
    let mut terminal = Terminal::open(&config, "default", &join);
    let device = terminal
        .says_line(|line| line.trim().starts_with(&format!("{}/#/device/", page.url)))
        .await;
    page.open(device.trim()).await;
    page.press("Yes, add it").await;
    terminal.end().await.expect(0);
    let agent = Terminal::open(&config, "default", command);
    let inbox = async || {
        let inbox = Terminal::open(&config, "default", "countersign inbox");
        inbox.end().await.expect(0).out.contains("echo hello")
    };
    until("the request is there", PATIENCE, inbox).await;
    let mut approve = Terminal::open(&config, "default", "countersign approve");
    approve.asks("[y/N]").await;
    approve.types("yes\n").await;
    approve.end().await.expect(0);
    agent.end().await.expect(0);
    page.close().await;

    signal(dev.pid(), Signal::SIGTERM);
    let (clean, printed) = tokio::task::spawn_blocking(|| dev.end()).await.unwrap();
    assert_eq!(printed.lines().last(), Some(link), "{printed}");
    assert!(clean);
}
