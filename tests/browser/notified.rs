//! A notification on a device. Chromium gets a subscription only from its vendor's service, so the
//! page gets one of the tests' own push service instead; what that receives is opened as a browser
//! does, and handed to the page's service worker.

use serde_json::json;

use super::PATIENCE;
use super::page::Page;
use super::stage::BrowserStage;
use crate::notifications::quick;
use crate::notifications::receiver::{Browser, Receiver};
use crate::support::{Cluster, until};

const ENDPOINT: &str = "/push/alice";

/// Runs before the page does: what `subscribe` returns, until it is ended.
const PUSH_MANAGER: &str = "
    const [endpoint, keys] = SUBSCRIPTION;
    const read = () => JSON.parse(localStorage.getItem('test-subscription'));
    const subscription = () => read() && {
        endpoint,
        options: { applicationServerKey: new Uint8Array(read()).buffer },
        toJSON: () => ({ endpoint, keys }),
        unsubscribe: async () => localStorage.removeItem('test-subscription'),
    };
    PushManager.prototype.getSubscription = async () => subscription();
    PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
        if (!userVisibleOnly) throw new Error('Chromium shows every message');
        localStorage.setItem('test-subscription', JSON.stringify([...applicationServerKey]));
        return subscription();
    };";

/// From the text above the button to the button.
const GAP_ABOVE: &str = "
    const button = [...document.querySelectorAll('main button')].find((one) => one.innerText.trim() === 'Turn on');
    if (!button) return null;
    const text = button.closest('.row').previousElementSibling;
    return button.getBoundingClientRect().top - text.getBoundingClientRect().bottom;";

/// Runs before the page does: the number that it puts on its icon.
const BADGE: &str = "
    const value = async (count) => { window.testBadge = count; };
    Object.defineProperty(navigator, 'setAppBadge', { value });";

/// The notifications that the service worker has shown.
pub const SHOWN: &str = "
    return navigator.serviceWorker.ready
        .then((registration) => registration.getNotifications())
        .then((shown) => shown.length === 0 ? null : shown.map(({ title, body }) => ({ title, body })));";

async fn give_subscription(page: &Page, endpoint: &str, keys: &serde_json::Value) {
    let session = &page.browser.session;
    let origin = json!({ "origin": page.url, "permissions": ["notifications"] });
    session.devtools("Browser.grantPermissions", origin).await;
    let script = PUSH_MANAGER.replace("SUBSCRIPTION", &json!([endpoint, keys]).to_string());
    let script = json!({ "source": format!("{{{script}}}") });
    session
        .devtools("Page.addScriptToEvaluateOnNewDocument", script)
        .await;
}

/// Hands a message to the service worker until it has shown a notification that says this: the
/// browser drops what comes while the worker is being replaced, and a push service would send it
/// again.
async fn deliver_until_shown(page: &Page, message: &[u8], body: &str) {
    until(body, PATIENCE, async || {
        deliver(page, message).await;
        let shown = page.run(SHOWN).await;
        let shown = shown.as_array().cloned().unwrap_or_default();
        shown.contains(&json!({ "title": "Countersign", "body": body }))
    })
    .await;
}

/// Hands a message to the service worker, as the browser does when its push service sends one.
async fn deliver(page: &Page, message: &[u8]) {
    let session = &page.browser.session;
    session.devtools("ServiceWorker.enable", json!({})).await;
    let message = json!({
        "origin": page.url,
        // The first and only one in this profile.
        "registrationId": "0",
        "data": std::str::from_utf8(message).unwrap(),
    });
    session
        .devtools("ServiceWorker.deliverPushMessage", message)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_told_that_a_request_waits_and_nothing_more() {
    let stage = BrowserStage::on(Cluster::with(1, quick).await);
    let receiver = Receiver::start().await;
    let subscribed = Browser::new(7);
    let page = stage.page().await;
    let endpoint = format!("{}{ENDPOINT}", receiver.url);
    give_subscription(&page, &endpoint, &subscribed.keys()).await;
    let bot = stage.pair(&page).await;

    page.open("#/settings").await;
    let gap = page.until("“Turn on” is there", GAP_ABOVE).await;
    assert!(gap.as_f64().unwrap() > 0.0, "{gap}");
    page.press("Turn on").await;
    page.sees("You’ll get a notification on this device").await;
    page.press("Send a test").await;
    let sent = receiver.awaited(ENDPOINT, 1).await;
    let test = subscribed.open(&sent[0].body);
    deliver_until_shown(&page, &test, "Notifications work on this device.").await;

    let running = bot.begin(&["run", "--", "echo", "a secret"]);
    let sent = receiver.awaited(ENDPOINT, 2).await;
    let message = subscribed.open(&sent[1].body);
    assert!(!String::from_utf8_lossy(&message).contains("secret"));
    deliver_until_shown(&page, &message, "A request is waiting for your decision.").await;

    page.open_request("echo").await;
    page.approve().await;
    assert_eq!(running.end().await.expect(0).out, "a secret\n");

    // Turned off, the push service hears no more.
    page.open("#/settings").await;
    page.press("Turn off").await;
    page.sees("Get a notification on this device").await;
    let admin = stage.cluster.admin().await;
    let listed = admin.get("/v1/approvers/alice/notifications").await;
    assert_eq!(listed.expect(200).json()["notifications"], json!([]));
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_icon_counts_the_requests_that_wait() {
    let stage = BrowserStage::start().await;
    let page = stage.page().await;
    let script = json!({ "source": format!("{{{BADGE}}}") });
    page.browser
        .session
        .devtools("Page.addScriptToEvaluateOnNewDocument", script)
        .await;
    let bot = stage.pair(&page).await;
    page.open("#/inbox").await;
    page.until("the icon counts none", "return window.testBadge === 0")
        .await;
    let running = bot.begin(&["run", "--", "echo", "hello"]);
    page.until("the icon counts one", "return window.testBadge === 1")
        .await;
    page.open_request("echo hello").await;
    page.approve().await;
    page.until("the icon counts none", "return window.testBadge === 0")
        .await;
    running.end().await.expect(0);
    page.close().await;
}

/// The buttons of a notification lead to this address.
#[tokio::test(flavor = "multi_thread")]
async fn a_button_of_a_notification_opens_the_request_and_decides_nothing() {
    let (_stage, bot, page) = BrowserStage::paired().await;
    let running = bot.begin(&["run", "--", "echo", "hello"]);
    page.open("#/inbox").await;
    page.sees("echo hello").await;
    page.open("#/next/reject").await;
    page.until(
        "the rejection is marked",
        "return document.querySelector('.decision.wants-reject:not([inert])') !== null",
    )
    .await;
    let place = page.run("return location.hash").await;
    let place = place.as_str().unwrap();
    assert!(
        place.starts_with("#/request/") && place.ends_with("/reject"),
        "{place}"
    );
    let asks = "return document.querySelector('dialog[open], .outcome') === null";
    assert_eq!(page.run(asks).await, true);
    // It still can be approved.
    page.approve().await;
    assert_eq!(running.end().await.expect(0).out, "hello\n");
    page.close().await;
}
