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

/// Both rows are there without a box, and neither the title nor the badge counts them.
const NOT_COUNTED: &str = "
    const rows = document.querySelectorAll('.details .request-row');
    return rows.length === 2
        && document.querySelector('.details .request-row input') === null
        && !document.title.startsWith('(')
        && document.querySelector('.nav .badge').hidden;";

/// As a person who comes back to the page now and then, which then reads the inbox at once.
const COME_BACK: &str = "
    const rows = [...document.querySelectorAll('.requests .request-row')];
    if (rows.some((row) => row.innerText.includes('echo patient'))) return true;
    if (!(Date.now() - window.testCameAt < 2000)) {
        window.testCameAt = Date.now();
        document.dispatchEvent(new Event('visibilitychange'));
    }
    return false;";

/// From the click on the old device until both can decide.
const ADDED_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_device_adds_a_device_by_a_link() {
    let stage = BrowserStage::start().await;
    let [first, second] = Chromium::start().await;
    let [first, second] = [first, second].map(|browser| Page::at(browser, &stage.url()));
    let bot = stage.pair(&first).await;
    let earlier = bot.begin(&["run", "--", "echo", "earlier"]);
    let patient = bot.begin(&["run", "--", "echo", "patient"]);
    first.open_request("echo earlier").await;

    let begun = Instant::now();
    first.open("#/device").await;
    first.sees("Waiting for the new device").await;
    let link = first
        .run("return document.querySelector('.copy-field input').value")
        .await;
    assert!(
        !first
            .run("return document.querySelector('.qr svg')")
            .await
            .is_null()
    );
    // Called as the first one by default, so it gets a number.
    second.join(link.as_str().unwrap(), "phone").await;
    second.sees("Confirm on your other device").await;
    first.sees("Is this your new device?").await;
    let compared = "return [...document.querySelectorAll('.compare')].map((one) => one.innerText)";
    let shown = second.run(compared).await;
    assert_eq!(shown[0], "phone 2");
    assert_eq!(
        first.run(compared).await,
        shown,
        "both screens show the same"
    );
    first.press("Yes, add it").await;
    first.sees("phone 2 was added").await;
    second.sees("This device is ready").await;
    assert!(
        begun.elapsed() < ADDED_WITHIN,
        "after {:?}",
        begun.elapsed()
    );

    // Both decide. The new one has what was asked before in one line.
    second
        .sees("2 requests were sent before this device was added. Decide them on phone.")
        .await;
    second
        .until("they are not counted or selected", NOT_COUNTED)
        .await;
    let both = bot.begin(&["run", "--", "echo", "both"]);
    second.open_request("echo both").await;
    second.approve().await;
    both.end().await.expect(0);
    first.open_request("echo earlier").await;
    first.approve().await;
    earlier.end().await.expect(0);

    // The enforcer encrypts what still waits again, after its long poll.
    second.open("#/inbox").await;
    second.until("it opens on the new device", COME_BACK).await;
    second.open_request("echo patient").await;
    second.approve().await;
    assert_eq!(patient.end().await.expect(0).out, "patient\n");

    // The link is used up, and a device is renamed for this browser alone.
    first.open("#/devices").await;
    first.press("Rename phone 2").await;
    first.fill("Name", "tablet").await;
    first.press("Save").await;
    first.sees("Joined as phone 2").await;
    second.open("#/devices").await;
    second.sees("phone 2").await;
    second.no_longer_sees("tablet").await;
    first.close().await;
    second.close().await;
}

/// A video of one picture, as a camera would take it of a screen.
fn video(text: &str) -> Vec<u8> {
    const WIDTH: usize = 640;
    const HEIGHT: usize = 480;
    let code = qrcode::QrCode::new(text).unwrap();
    let (size, colours) = (code.width(), code.to_colors());
    let pixels = (HEIGHT - 80) / size;
    let (left, top) = ((WIDTH - size * pixels) / 2, (HEIGHT - size * pixels) / 2);
    let shade = |x: usize, y: usize| {
        let (column, row) = (x.checked_sub(left)? / pixels, y.checked_sub(top)? / pixels);
        let is_in = column < size && row < size;
        (is_in && colours[row * size + column] == qrcode::Color::Dark).then_some(30)
    };
    let mut file = format!("YUV4MPEG2 W{WIDTH} H{HEIGHT} F10:1 Ip A1:1 C420jpeg\n").into_bytes();
    for _ in 0..2 {
        file.extend_from_slice(b"FRAME\n");
        for at in 0..WIDTH * HEIGHT {
            file.push(shade(at % WIDTH, at / WIDTH).unwrap_or(220));
        }
        file.extend(std::iter::repeat_n(128, WIDTH * HEIGHT / 2));
    }
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn a_camera_reads_the_code_in_a_browser_without_a_detector() {
    let stage = BrowserStage::start().await;
    let file = stage.directory.path().join("camera.y4m");
    std::fs::write(&file, video("https://elsewhere.example/#/device/scanned")).unwrap();
    let page = Page::at(Chromium::with_camera(&file).await, &stage.url());
    let invitation = stage.invitation("approver", "alice").await;
    page.join_first(&invitation, "phone").await;
    page.run("delete window.BarcodeDetector").await;
    page.open("#/device").await;
    page.sees("The new device already shows a link").await;
    page.run("document.querySelector('details').open = true")
        .await;
    page.press("Scan a QR code").await;
    page.until(
        "the code was read",
        "return location.hash === '#/device/scanned'",
    )
    .await;
    page.close().await;
}
