//! Firefox, by the protocol that geckodriver speaks with it: that program is in no package of
//! Debian's. A message is a length, a colon and JSON.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::PATIENCE;
use super::webdriver::{Browser, Fault, SEATS, Session};
use crate::support::until;

pub struct Marionette {
    connection: Mutex<Connection>,
    /// Firefox ends with the standard input of this.
    process: Child,
}

impl Drop for Marionette {
    /// Waits for the end of Firefox, which writes into its profile until then.
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(20);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

struct Connection {
    stream: BufReader<TcpStream>,
    count: u64,
}

impl Connection {
    async fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            match self.stream.read_u8().await.expect("Firefox is there") {
                b':' => break,
                digit => length = length * 10 + usize::from(digit - b'0'),
            }
        }
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).await.unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    async fn call(&mut self, command: &str, parameters: Value) -> Result<Value, Fault> {
        self.count += 1;
        let text = json!([0, self.count, command, parameters]).to_string();
        let text = format!("{}:{text}", text.len());
        self.stream.write_all(text.as_bytes()).await.unwrap();
        let answer = self.receive().await;
        assert_eq!(answer[1], self.count, "{answer}");
        match Fault::of(&answer[2]) {
            Some(fault) => Err(fault),
            None => Ok(answer[3]["value"].clone()),
        }
    }
}

/// The command that a path of `WebDriver` stands for, and its parameters.
fn command(path: &str, mut body: Value) -> (&'static str, Value) {
    let element = path.strip_prefix("/element/");
    if let Some((id, action)) = element.and_then(|rest| rest.split_once('/')) {
        body["id"] = id.into();
        return match action {
            "click" => ("WebDriver:ElementClick", body),
            "clear" => ("WebDriver:ElementClear", body),
            "value" => ("WebDriver:ElementSendKeys", body),
            _ => panic!("{path} is not used in Firefox"),
        };
    }
    match path {
        "/url" => ("WebDriver:Navigate", body),
        "/execute/sync" => ("WebDriver:ExecuteScript", body),
        "/actions" => ("WebDriver:PerformActions", body),
        _ => panic!("{path} is not used in Firefox"),
    }
}

impl Marionette {
    pub async fn post(&self, path: &str, body: Value) -> Result<Value, Fault> {
        let (command, parameters) = command(path, body);
        let mut connection = self.connection.lock().await;
        let answer = timeout(PATIENCE * 2, connection.call(command, parameters));
        answer.await.expect("Firefox answers")
    }

    async fn start(profile: &Path) -> Self {
        let program = ["firefox-esr", "firefox"].into_iter().find(|program| {
            let version = std::process::Command::new(program)
                .arg("--version")
                .output();
            version.is_ok_and(|said| said.status.success())
        });
        let process = Command::new("sh")
            .args(["-c", "\"$@\" & cat >/dev/null; kill $!; wait", "sh"])
            .arg(program.expect("Firefox, of the package firefox-esr"))
            .args(["--marionette", "--headless", "--no-remote", "--profile"])
            .arg(profile)
            .env("HOME", profile)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let file = profile.join("MarionetteActivePort");
        let port = || -> Option<u16> { std::fs::read_to_string(&file).ok()?.trim().parse().ok() };
        until("Firefox listens", PATIENCE, async || port().is_some()).await;
        let address = ("127.0.0.1", port().unwrap());
        let stream = TcpStream::connect(address).await.unwrap();
        let mut connection = Connection {
            stream: BufReader::new(stream),
            count: 0,
        };
        let hello = connection.receive().await;
        assert_eq!(hello["marionetteProtocol"], 3, "{hello}");
        let wanted = json!({ "timeouts": { "script": 60_000, "pageLoad": 60_000 } });
        let session = connection.call("WebDriver:NewSession", wanted).await;
        session.expect("a session");
        Self {
            connection: Mutex::new(connection),
            process,
        }
    }
}

/// Starts Firefox with an empty profile and these settings.
pub async fn start_firefox(settings: &[(&str, Value)]) -> Browser {
    let seat = SEATS.acquire().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let always = [
        ("intl.accept_languages", json!("en-US")),
        ("marionette.port", json!(0)),
        // Nothing but the page is asked for anything.
        ("app.normandy.enabled", json!(false)),
        (
            "browser.safebrowsing.downloads.remote.enabled",
            json!(false),
        ),
        ("browser.safebrowsing.malware.enabled", json!(false)),
        ("browser.safebrowsing.phishing.enabled", json!(false)),
        ("datareporting.policy.dataSubmissionEnabled", json!(false)),
        ("network.captive-portal-service.enabled", json!(false)),
        ("network.connectivity-service.enabled", json!(false)),
        ("services.settings.server", json!("data:,")),
        ("toolkit.telemetry.enabled", json!(false)),
    ];
    let lines: Vec<_> = (always.iter().chain(settings))
        .map(|(name, value)| format!("user_pref({}, {value});", json!(name)))
        .collect();
    std::fs::write(directory.path().join("user.js"), lines.join("\n")).unwrap();
    let marionette = Marionette::start(directory.path()).await;
    Browser {
        session: Session::firefox(marionette),
        downloads: directory.path().join("downloads"),
        _directory: directory,
        _seat: seat,
    }
}
