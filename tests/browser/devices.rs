//! A second device: endorsed by the first, which shows it the same requests and decisions at once,
//! and then revoked.

use std::time::{Duration, Instant};

use super::chromium::Chromium;
use super::page::Page;
use super::stage::BrowserStage;

/// A decision is to be seen on other devices after a second or so. Machines that run everything at
/// once are slow.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_second_device_is_added_sees_what_the_first_decides_and_is_revoked() {
    let stage = BrowserStage::start().await;
    let [first, second] = Chromium::start().await;
    let [first, mut second] = [first, second].map(|browser| Page::at(browser, &stage.url()));
    let bot = stage.pair(&first).await;

    // Endorsed: both screens show the same name and id.
    second
        .join(&stage.invitation("approver", "alice").await, "laptop")
        .await;
    second
        .sees("Open this link on a device you already use")
        .await;
    let id = second
        .run("return document.querySelector('.enrol code').innerText")
        .await;
    let link = second
        .run("return document.querySelector('.copy-field input').value")
        .await;
    first.open(link.as_str().unwrap()).await;
    first.sees("Is this your new device?").await;
    let compared = first
        .run("return [...document.querySelectorAll('.compare')].map((one) => one.innerText)")
        .await;
    assert_eq!(compared, serde_json::json!(["laptop", id]));
    first.press("Yes, add it").await;
    first.sees("laptop was added").await;
    second.sees("This device is ready").await;

    // It knows the agent without having been paired with it, and the agent knows it.
    let checked = bot.run(&["doctor"]).await;
    assert!(checked.out.contains("laptop"), "{checked:?}");
    let both = bot.begin(&["run", "--", "echo", "both"]);
    first.open_request("echo both").await;
    second.open_request("echo both").await;
    second.press("Approve").await;
    let begun = Instant::now();
    first.ends_as("Approved").await;
    assert!(begun.elapsed() < SOON, "after {:?}", begun.elapsed());
    first.sees("Decided on another device").await;
    both.end().await.expect(0);

    // Revoked: it says so, and opens nothing any more.
    first.open("#/devices").await;
    first.press("Revoke laptop").await;
    first.sees("This can’t be undone.").await;
    first.press("Revoke").await;
    first.sees("1 former device").await;
    let checked = bot.run(&["doctor"]).await;
    assert!(!checked.out.contains("laptop"), "{checked:?}");
    let alone = bot.begin(&["run", "--", "echo", "alone"]);
    second.may_lose_gateway();
    second.open("#/inbox").await;
    second.run("location.reload()").await;
    second
        .sees("This device was revoked, so it can’t decide.")
        .await;
    second.choose("This request can’t be approved").await;
    second.sees("It isn’t encrypted for this device.").await;
    assert!(!second.offers("Approve").await);
    first.open_request("echo alone").await;
    first.approve().await;
    alone.end().await.expect(0);
    first.close().await;
    second.close().await;
}
