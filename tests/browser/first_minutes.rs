//! The first five minutes of the README in a browser: the link that `countersign dev` prints, and
//! the one that the first request prints.

use super::chromium::Chromium;
use super::page::Page;
use super::stage::Terminal;
use crate::support::process::{Process, Signal, countersign, signal};

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
    let file = directory.path().join("ready.json");
    let listen = [
        "dev",
        "--ephemeral",
        "--listen",
        "127.0.0.1:0",
        "--ready-file",
    ];
    let mut dev = Process::start(
        countersign()
            .env("XDG_CONFIG_HOME", &config)
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
    page.close().await;

    signal(dev.pid(), Signal::SIGTERM);
    let (clean, printed) = tokio::task::spawn_blocking(|| dev.end()).await.unwrap();
    let step = printed
        .lines()
        .skip_while(|line| !line.contains("Open this link in a browser"))
        .nth(1);
    assert_eq!(step.map(str::trim), Some(link), "{printed}");
    assert!(clean);
}
