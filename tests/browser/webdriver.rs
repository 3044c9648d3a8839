//! The part of the `WebDriver` protocol that these tests need, over the HTTP client that the other
//! tests use. The crates for it do not fit. `thirtyfour` switches on `preserve_order` of
//! `serde_json`, so that every test would run another program than the one we ship. `fantoccini`
//! needs a crate under the MPL, which `deny.toml` does not allow.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::PATIENCE;
use super::marionette::Marionette;
use crate::support::http;

/// Browsers at the same time: more would only wait for each other.
const BROWSERS: usize = 3;
pub static SEATS: Semaphore = Semaphore::const_new(BROWSERS);

/// A browser and what it keeps.
pub struct Browser {
    pub session: Session,
    /// Where it saves files.
    pub downloads: PathBuf,
    // Dropped after the browser has ended.
    pub _directory: TempDir,
    pub _seat: SemaphorePermit<'static>,
}

/// A session, which is one browser. It ends when this is dropped.
pub struct Session {
    link: Link,
}

/// How the browser is reached: Chromium through its driver, Firefox by its own protocol, of which
/// the commands are the same.
enum Link {
    Driver(Driver),
    Firefox(Box<Marionette>),
}

struct Driver {
    http: reqwest::Client,
    url: String,
    id: String,
}

/// The driver's refusal, and its reason.
pub struct Fault {
    pub code: String,
    pub message: String,
}

impl std::fmt::Debug for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl Fault {
    /// The fault that an answer is, if it is one.
    pub fn of(answer: &Value) -> Option<Self> {
        Some(Self {
            code: answer["error"].as_str()?.to_owned(),
            message: answer["message"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Whether it may work in a moment: the page is still changing.
    pub fn is_passing(&self) -> bool {
        matches!(
            self.code.as_str(),
            "element click intercepted"
                | "element not interactable"
                | "no such element"
                | "stale element reference"
        )
    }
}

/// An element, as the driver names it.
#[derive(Debug, Clone)]
pub struct Element(Value);

/// The name of the member that holds an element's id, by the specification.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

impl Element {
    fn of(value: &Value) -> Option<Self> {
        value.get(ELEMENT).map(|_| Self(value.clone()))
    }

    fn path(&self, action: &str) -> String {
        format!("/element/{}/{action}", self.0[ELEMENT].as_str().unwrap())
    }
}

impl Driver {
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Fault> {
        let url = format!("{}/session{}{path}", self.url, self.id);
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("the driver answers");
        let answer: Value = answer.json().await.expect("JSON");
        let value = answer["value"].clone();
        match Fault::of(&value) {
            Some(fault) => Err(fault),
            None => Ok(value),
        }
    }
}

impl Session {
    /// `driver` is the address of a chromedriver.
    pub async fn start(driver: &str, capabilities: Value) -> Self {
        let mut driver = Driver {
            http: http().no_proxy().timeout(PATIENCE * 2).build().unwrap(),
            url: driver.to_owned(),
            id: String::new(),
        };
        let wanted = json!({ "capabilities": { "alwaysMatch": capabilities } });
        let made = driver.call(Method::POST, "", Some(wanted)).await;
        let made = made.expect("a browser");
        driver.id = format!("/{}", made["sessionId"].as_str().unwrap());
        Self {
            link: Link::Driver(driver),
        }
    }

    pub fn firefox(marionette: Marionette) -> Self {
        Self {
            link: Link::Firefox(Box::new(marionette)),
        }
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<Value, Fault> {
        match &self.link {
            Link::Driver(driver) => driver.call(Method::POST, path, Some(body)).await,
            Link::Firefox(marionette) => marionette.post(path, body).await,
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value, Fault> {
        match &self.link {
            Link::Driver(driver) => driver.call(Method::GET, path, None).await,
            Link::Firefox(_) => panic!("{path} is not read in Firefox"),
        }
    }

    pub async fn goto(&self, url: &str) {
        self.post("/url", json!({ "url": url })).await.unwrap();
    }

    /// Runs a script in the page. A promise that it returns is awaited.
    pub async fn run(&self, script: &str, arguments: Value) -> Result<Value, Fault> {
        let body = json!({ "script": script, "args": arguments });
        self.post("/execute/sync", body).await
    }

    /// The element that a script returns.
    pub async fn locate(&self, script: &str, arguments: Value) -> Result<Option<Element>, Fault> {
        Ok(Element::of(&self.run(script, arguments).await?))
    }

    pub async fn click(&self, element: &Element) -> Result<(), Fault> {
        self.post(&element.path("click"), json!({})).await.map(drop)
    }

    /// Replaces what a control holds.
    pub async fn write(&self, element: &Element, text: &str) -> Result<(), Fault> {
        self.post(&element.path("clear"), json!({})).await?;
        let body = json!({ "text": text });
        self.post(&element.path("value"), body).await.map(drop)
    }

    /// Presses a key, wherever the focus is.
    pub async fn key(&self, key: &str) {
        let actions = [
            json!({ "type": "keyDown", "value": key }),
            json!({ "type": "keyUp", "value": key }),
        ];
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        let body = json!({ "actions": [keyboard] });
        self.post("/actions", body).await.unwrap();
    }

    /// A command of Chromium's own protocol.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.post("/goog/cdp/execute", body).await.unwrap()
    }

    /// The console's messages since the last call; Firefox does not tell.
    pub async fn console(&self) -> Vec<Value> {
        if matches!(self.link, Link::Firefox(_)) {
            return Vec::new();
        }
        let log = self.post("/se/log", json!({ "type": "browser" })).await;
        log.unwrap().as_array().unwrap().clone()
    }
}

impl Drop for Driver {
    /// Also when the test has failed, and its runtime with it. The driver answers once the browser
    /// has ended.
    fn drop(&mut self) {
        let address = self.url.trim_start_matches("http://");
        let request = format!(
            "DELETE /session{} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.id
        );
        let Ok(mut socket) = TcpStream::connect(address) else {
            return;
        };
        drop(socket.set_read_timeout(Some(Duration::from_secs(20))));
        drop(socket.write_all(request.as_bytes()));
        drop(socket.read(&mut [0; 1024]));
    }
}
