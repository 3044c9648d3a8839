//! A node behind a proxy that is the generator itself: it says where calls come from. Its
//! authorization server is here too.

use std::cell::Cell;
use std::convert::Infallible;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::Bench;
use crate::client::Connection;
use crate::load::{in_seconds, random_id};
use crate::nodes::resident_kib;
use crate::postgres::Database;
use crate::submissions::Artifact;

/// Where honest clients are, and where the attacker is.
pub const HONEST: &str = "192.0.2.1";
pub const ELSEWHERE: &str = "198.51.100.1";
/// Connections that the node takes: few, so that they can be used up.
pub const MAX_CONNECTIONS: usize = 2_000;
/// How long the node may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the authorization server takes to refuse a token.
const REFUSES_AFTER: Duration = Duration::from_millis(500);
const HASH: &str = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";

pub struct AttackScene {
    /// Where the node listens: `127.0.0.1:8080`.
    pub address: String,
    /// The attacker's keys: of the approver `mallory`, and of an enforcer.
    pub mallory: String,
    pub mallory_bot: String,
    enforcer: String,
    approver: String,
    artifact: Artifact,
    child: Child,
    pid: u32,
    database: Database,
    _directory: TempDir,
}

/// The program's output with these arguments, as JSON.
async fn printed(database: &Database, arguments: &[&str]) -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["--database-url", &database.url])
        .args(arguments)
        .arg("--json")
        .output()
        .await?;
    anyhow::ensure!(output.status.success(), "{arguments:?} failed");
    Ok(serde_json::from_slice(&output.stdout)?)
}

async fn tenant(database: &Database, name: &str) -> anyhow::Result<String> {
    let made = printed(database, &["tenant", "create", name]).await?;
    let id = made["tenantId"].as_str();
    Ok(id.context("a tenant")?.to_owned())
}

async fn key(database: &Database, tenant: &str, role: &str, id: &str) -> anyhow::Result<String> {
    let create = ["credential", "create", "--tenant", tenant];
    let arguments = [&create[..], &["--role", role, "--bound-id", id]].concat();
    let made = printed(database, &arguments).await?;
    Ok(made["apiKey"].as_str().context("a key")?.to_owned())
}

/// An authorization server that knows every token that begins with `fresh`, and is slow to refuse
/// any other.
async fn authorization_server(tenant: String) -> anyhow::Result<String> {
    let claims = json!({
        "active": true, "sub": "alice", "tenant": tenant, "role": "approver", "countersign_id": "alice",
    });
    let claims = claims.to_string();
    let introspect = async move |form: String| {
        if form.starts_with("token=fresh") {
            return claims.clone();
        }
        sleep(REFUSES_AFTER).await;
        json!({ "active": false }).to_string()
    };
    let router = Router::new().route("/introspect", post(introspect));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/introspect", listener.local_addr()?);
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(url)
}

impl AttackScene {
    /// A node with the default limits, and the attacker's inbox of four items of 2 MiB.
    pub async fn start(bench: &Bench) -> anyhow::Result<Self> {
        let database = bench.postgres.migrated().await?;
        let (ours, theirs) = (
            tenant(&database, "honest").await?,
            tenant(&database, "mallory").await?,
        );
        let introspection = authorization_server(ours.clone()).await?;
        let directory = TempDir::new()?;
        let file = directory.path().join("url");
        let connections = MAX_CONNECTIONS.to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["--database-url", &database.url])
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&file)
            .env("COUNTERSIGN_LOG__FILTER", "error")
            .env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", "")
            .env("COUNTERSIGN_TLS__MODE", "upstream")
            .env("COUNTERSIGN_TLS__PROXIES", "[\"127.0.0.1/32\"]")
            .env("COUNTERSIGN_SERVER__MAX_CONNECTIONS", connections)
            .env("COUNTERSIGN_AUTH__INTROSPECTION_URL", introspection)
            .env("COUNTERSIGN_AUTH__INTROSPECTION_CLIENT_ID", "bench")
            .env("COUNTERSIGN_AUTH__INTROSPECTION_CLIENT_SECRET", "bench")
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let deadline = Instant::now() + PATIENCE;
        let url = loop {
            if let Ok(url) = std::fs::read_to_string(&file) {
                break url;
            }
            anyhow::ensure!(child.try_wait()?.is_none(), "the node ended");
            anyhow::ensure!(Instant::now() < deadline, "the node is not ready");
            sleep(Duration::from_millis(20)).await;
        };
        let scene = Self {
            address: url.replace("http://", ""),
            mallory: key(&database, &theirs, "approver", "mallory").await?,
            mallory_bot: key(&database, &theirs, "enforcer", "mallory-bot").await?,
            enforcer: key(&database, &ours, "enforcer", "bot").await?,
            approver: key(&database, &ours, "approver", "alice").await?,
            artifact: Artifact::usual()?,
            pid: child.id().context("it ended already")?,
            child,
            database,
            _directory: directory,
        };
        let mut connection = Connection::open(&scene.address).await?;
        let large = Artifact::sealed(2_000_000)?;
        for _ in 0..4 {
            let envelope = large.envelope(&random_id()?, "mallory-bot", "mallory");
            let submit = scene.post("/v1/artifacts", &scene.mallory_bot, ELSEWHERE, &envelope);
            connection.call(&submit, 202).await?;
        }
        Ok(scene)
    }

    /// A request from an address, whole.
    pub fn get(&self, path: &str, key: &str, from: &str) -> Vec<u8> {
        self.request("GET", path, key, from, "")
    }

    pub fn post(&self, path: &str, key: &str, from: &str, body: &str) -> Vec<u8> {
        let length = body.len();
        let content =
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        self.request("POST", path, key, from, &content)
    }

    fn request(&self, method: &str, path: &str, key: &str, from: &str, content: &str) -> Vec<u8> {
        let end = if content.is_empty() { "\r\n" } else { content };
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n\
             X-Forwarded-Proto: https\r\nX-Forwarded-For: {from}\r\n{end}",
            self.address
        )
        .into_bytes()
    }

    /// An exchange of the honest tenant: submitted, decided, and waited for.
    pub async fn exchange(&self, connection: &mut Connection) -> anyhow::Result<()> {
        let id = random_id()?;
        let envelope = self.artifact.envelope(&id, "bot", "alice");
        let submit = self.post("/v1/artifacts", &self.enforcer, HONEST, &envelope);
        connection.call(&submit, 202).await?;
        let (created_at, signature) = (in_seconds(-1)?, "A".repeat(86));
        let decision = format!(
            r#"{{"msgType":"decision.submit","requestId":"{id}","createdAt":"{created_at}","sender":{{"approverId":"alice"}},"body":{{"artifactHash":"{HASH}","decision":"approve","signerKeyId":"key-1","nonce":"{id}","signature":"{signature}"}}}}"#
        );
        let decide = self.post("/v1/decisions", &self.approver, HONEST, &decision);
        connection.call(&decide, 200).await?;
        let path = format!("/v1/exchanges/{id}/wait?timeout=5");
        let wait = self.get(&path, &self.enforcer, HONEST);
        connection.call(&wait, 200).await.map(drop)
    }

    /// Notes the most memory that the node has had, in MiB, for as long as it is watched.
    pub async fn watch(&self, most: &Cell<f64>) -> anyhow::Result<Infallible> {
        loop {
            let mib = resident_kib(self.pid)? / 1_024.0;
            most.set(most.get().max(mib));
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Stops the node and takes its database away.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.child.kill().await?;
        self.database.remove().await
    }
}
