//! The browser's storage: keys that nobody can take out, decisions that can be verified elsewhere,
//! and nothing after logging out.

use serde_json::{Value, json};

use super::stage::{Bot, BrowserStage};

/// Every key in the profile: whether it can be extracted, and in which formats it was given out all
/// the same.
const KEYS: &str = "
    const database = await new Promise((resolve, reject) => {
        const request = indexedDB.open('countersign');
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    const profile = await new Promise((resolve, reject) => {
        const request = database.transaction('profile').objectStore('profile').get('approver');
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    database.close();
    const keys = [];
    const collect = (value) => {
        if (value instanceof CryptoKey) keys.push(value);
        else if (value && typeof value === 'object') Object.values(value).forEach(collect);
    };
    collect(profile);
    const secret = [];
    for (const key of keys.filter(({ type }) => type !== 'public')) {
        const given = [];
        for (const format of ['raw', 'pkcs8', 'jwk']) {
            await crypto.subtle.exportKey(format, key).then(() => given.push(format), () => {});
        }
        secret.push({ algorithm: key.algorithm.name, extractable: key.extractable, given });
    }
    return secret.sort((one, other) => one.algorithm.localeCompare(other.algorithm));";

/// The remains of a profile.
const LEFT: &str = "
    const cached = [];
    for (const name of await caches.keys()) {
        for (const request of await (await caches.open(name)).keys()) cached.push(new URL(request.url).pathname);
    }
    return {
        databases: (await indexedDB.databases()).map(({ name }) => name),
        cookies: document.cookie,
        local: Object.keys(localStorage), session: Object.keys(sessionStorage),
        calls: cached.filter((path) => path.startsWith('/v1') || path.startsWith('/platform')),
    };";

#[tokio::test(flavor = "multi_thread")]
async fn keys_stay_inside_and_logging_out_removes_everything() {
    let stage = BrowserStage::start().await;
    let page = stage.page().await;
    page.join_first(&stage.invitation("approver", "alice").await, "phone")
        .await;
    let key =
        |algorithm: &str| json!({ "algorithm": algorithm, "extractable": false, "given": [] });
    assert_eq!(page.run(KEYS).await, json!([key("Ed25519"), key("X25519")]));

    page.open("#/settings").await;
    page.press("Dark").await;
    assert_eq!(
        page.run("return document.documentElement.dataset.theme")
            .await,
        "dark"
    );
    page.press("Log out").await;
    page.sees("Log out of this browser?").await;
    page.press("Log out").await;
    page.sees("Decide what your agents may do").await;
    let nothing =
        json!({ "databases": [], "cookies": "", "local": [], "session": [], "calls": [] });
    assert_eq!(page.run(LEFT).await, nothing);
    let admin = stage.cluster.admin().await;
    let devices = admin
        .get("/v1/approvers/alice/devices")
        .await
        .expect(200)
        .json();
    assert!(devices["devices"][0]["revokedAt"].is_string(), "{devices}");
    // Nothing comes back.
    page.open("#/inbox").await;
    page.sees("Decide what your agents may do").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_decision_is_verified_without_the_gateway() {
    let (stage, bot, page) = BrowserStage::paired().await;
    let hello = bot.begin(&["run", "--", "echo", "hello"]);
    page.open_request("echo hello").await;
    page.approve().await;
    hello.end().await.expect(0);
    page.open("#/history").await;
    page.choose("echo hello").await;
    page.press("Save as a file").await;
    page.sees("Saved as").await;
    let saved = stage.directory.path().join("decision.json");
    crate::support::until("the file is saved", super::PATIENCE, async || {
        let files = std::fs::read_dir(&page.browser.downloads).unwrap();
        let mut files = files.map(|file| file.unwrap().path());
        let file = files.find(|file| file.extension().is_some_and(|it| it == "json"));
        // The browser makes an empty file first.
        let text = file.and_then(|file| std::fs::read_to_string(file).ok());
        let whole = text.filter(|text| serde_json::from_str::<Value>(text).is_ok());
        whole.is_some_and(|text| std::fs::write(&saved, text).is_ok())
    })
    .await;
    let device = page.run("return (await new Promise((resolve) => {
        const request = indexedDB.open('countersign');
        request.onsuccess = () => {
            const reading = request.result.transaction('decisions').objectStore('decisions').getAll();
            reading.onsuccess = () => resolve(JSON.parse(reading.result[0].body).signerKeyId);
        };
    }))").await;
    let device = device.as_str().unwrap();
    page.close().await;
    stage.cluster.stop().await;

    let file = saved.to_str().unwrap();
    let verified = bot.run(&["verify", file]).await.expect(0);
    assert!(
        verified.out.contains("approved by alice on phone"),
        "{}",
        verified.out
    );
    assert!(verified.out.contains("echo hello"), "{}", verified.out);
    let stranger = Bot::new(stage.directory.path(), "nobody");
    stranger
        .run(&["verify", file, "--device", device])
        .await
        .expect(0);
    stranger.run(&["verify", file]).await.expect(77);
    let whole = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, whole.replace("approve\\\"", "reject\\\"")).unwrap();
    bot.run(&["verify", file]).await.expect(77);
}
