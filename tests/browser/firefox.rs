//! The core of the page in Firefox: join, pair, approve a command, reject a patch, and be notified,
//! with a push service of the tests' own.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use sha2::Digest as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::marionette::start_firefox;
use super::page::Page;
use super::stage::BrowserStage;
use crate::notifications::quick;
use crate::support::Cluster;

const PATCH: &str = "\
--- a/limits.txt
+++ b/limits.txt
@@ -1 +1 @@
-10
+1000000
";

#[tokio::test(flavor = "multi_thread")]
async fn firefox_joins_pairs_approves_and_rejects() {
    let stage = BrowserStage::start().await;
    let page = Page::at(start_firefox(&[]).await, &stage.url());
    let bot = stage.pair(&page).await;

    let running = bot.begin(&["run", "--", "echo", "hello"]);
    page.open_request("echo hello").await;
    page.approve().await;
    assert_eq!(running.end().await.expect(0).out, "hello\n");
    page.sees("Confirmed by the agent’s machine: it was allowed.")
        .await;

    let asked = bot.begin_with(&["ask", "--type", "patch"], PATCH);
    page.open_request("limits.txt").await;
    page.reject("Far too much.").await;
    let rejected = asked.end().await.expect(77);
    assert_eq!(rejected.json()["reason"], "Far too much.");

    // Its keys are not extractable.
    let keys = "
        return new Promise((resolve, reject) => {
            const opening = indexedDB.open('countersign');
            opening.onerror = () => reject(opening.error);
            opening.onsuccess = () => {
                const database = opening.result;
                const stores = [...database.objectStoreNames];
                const reads = stores.map((name) => new Promise((done) => {
                    const all = database.transaction(name).objectStore(name).getAll();
                    all.onsuccess = () => done(all.result);
                }));
                Promise.all(reads).then((found) => {
                    database.close();
                    const keys = [];
                    const walk = (value) => {
                        if (value instanceof CryptoKey) keys.push(value);
                        else if (value && typeof value === 'object' && !ArrayBuffer.isView(value)) Object.values(value).forEach(walk);
                    };
                    walk(found);
                    resolve(keys.filter(({ type }) => type === 'private').map(({ extractable }) => extractable));
                });
            };
        });";
    let private = page.run(keys).await;
    let private = private.as_array().unwrap();
    assert!(
        private.len() >= 2 && private.iter().all(|extractable| extractable == false),
        "{private:?}"
    );
    page.close().await;
}

/// The push service, as Firefox calls it: Firefox subscribes over a WebSocket, and gets messages
/// there as they were posted.
struct PushService {
    socket: String,
}

impl PushService {
    async fn start() -> Self {
        let (sender, messages) = mpsc::unbounded_channel::<(HeaderMap, Bytes)>();
        let receive = async move |headers: HeaderMap, body: Bytes| {
            sender.send((headers, body)).unwrap();
            StatusCode::CREATED
        };
        let router = Router::new().route("/send", post(receive));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/send", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, router).into_future());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = format!("ws://{}/", listener.local_addr().unwrap());
        let messages = Arc::new(tokio::sync::Mutex::new(messages));
        let channel = Arc::new(Mutex::new(None));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (endpoint, messages) = (endpoint.clone(), Arc::clone(&messages));
                tokio::spawn(serve_firefox(
                    stream,
                    endpoint,
                    messages,
                    Arc::clone(&channel),
                ));
            }
        });
        Self { socket }
    }
}

async fn serve_firefox(
    stream: tokio::net::TcpStream,
    endpoint: String,
    messages: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<(HeaderMap, Bytes)>>>,
    channel: Arc<Mutex<Option<Value>>>,
) {
    let mut socket = accept_async(stream).await.unwrap();
    let mut messages = messages.lock().await;
    loop {
        let answer = tokio::select! {
            frame = socket.next() => {
                let Some(Ok(frame)) = frame else { return };
                let Ok(text) = frame.into_text() else { return };
                let said: Value = serde_json::from_str(&text).unwrap_or_default();
                match said["messageType"].as_str() {
                    Some("hello") => json!({
                        "messageType": "hello", "status": 200, "uaid": "0".repeat(32), "use_webpush": true, "broadcasts": {},
                    }),
                    Some("register") => {
                        *channel.lock().unwrap() = Some(said["channelID"].clone());
                        json!({
                            "messageType": "register", "status": 200, "channelID": said["channelID"], "pushEndpoint": endpoint,
                        })
                    }
                    Some("unregister") => json!({ "messageType": "unregister", "status": 200, "channelID": said["channelID"] }),
                    _ => continue,
                }
            }
            Some((headers, body)) = messages.recv() => json!({
                "messageType": "notification",
                "channelID": *channel.lock().unwrap(),
                "version": countersign::protocol::hex::encode(&sha2::Sha256::digest(&body)),
                "headers": { "encoding": headers["content-encoding"].to_str().unwrap() },
                "data": URL_SAFE_NO_PAD.encode(&body),
            }),
        };
        let text = Message::text(answer.to_string());
        if socket.send(text).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn firefox_is_told_that_a_request_waits() {
    let service = PushService::start().await;
    let settings = [
        // The settings that automation recommends would turn push off.
        ("remote.prefs.recommended", json!(false)),
        ("dom.push.serverURL", json!(service.socket)),
        ("dom.push.testing.allowInsecureServerURL", json!(true)),
        // Firefox shows notifications itself: a machine without a desktop has no service that
        // would.
        ("alerts.useSystemBackend", json!(false)),
        // As if the person had allowed it.
        ("permissions.default.desktop-notification", json!(1)),
    ];
    let stage = BrowserStage::on(Cluster::with(1, quick).await);
    let page = Page::at(start_firefox(&settings).await, &stage.url());
    let bot = stage.pair(&page).await;
    page.open("#/settings").await;
    page.press("Turn on").await;
    page.sees("You’ll get a notification on this device").await;

    let running = bot.begin(&["run", "--", "echo", "hello"]);
    let shown = page.until("a notification", super::notified::SHOWN).await;
    assert_eq!(shown[0]["body"], "A request is waiting for your decision.");
    page.open_request("echo hello").await;
    page.approve().await;
    running.end().await.expect(0);
    page.close().await;
}
