//! The methods of the protocol: the handshake, the list of tools, and their calls.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::io::AsyncBufRead;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call::ToolCall;
use super::requests::OpenRequests;
use super::rpc::{
    JsonObject, MessageReader, RequestId, RpcParams, error, invalid_params, response,
};
use super::tools::{INSTRUCTIONS, tools};

/// Oldest first.
const VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    NEWEST_HANDSHAKE,
    STATELESS,
];
const NEWEST_HANDSHAKE: &str = "2025-11-25";
/// Has no handshake: each request has the version and the client's capabilities in its metadata.
const STATELESS: &str = "2026-07-28";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// By the ids of their messages. A cancelled call is removed, so that it gets no answer.
/// Numbers tell calls apart that have the same id, one after the other.
type RunningCalls = HashMap<RequestId, (u64, CancellationToken)>;

pub struct McpServer {
    requests: Arc<OpenRequests>,
    output: mpsc::Sender<Value>,
    running: Arc<Mutex<RunningCalls>>,
    begun: AtomicU64,
    calls: TaskTracker,
    /// Whether the session began with a handshake, once it has begun.
    has_handshake: Option<bool>,
}

impl McpServer {
    pub fn new(requests: Arc<OpenRequests>, output: mpsc::Sender<Value>) -> Self {
        Self {
            requests,
            output,
            running: Arc::default(),
            begun: AtomicU64::new(0),
            calls: TaskTracker::new(),
            has_handshake: None,
        }
    }

    /// Returns at the end of the input.
    pub async fn serve(&mut self, input: impl AsyncBufRead + Unpin) -> anyhow::Result<()> {
        let mut messages = MessageReader::new(input);
        while let Some(message) = messages.next().await? {
            let answer = match message {
                Err(_) => Some(invalid_message()),
                Ok(message) => {
                    let params = message.params.unwrap_or_default();
                    match (message.id, message.method) {
                        (Some(id), Some(method)) => {
                            let result = self.answer(&id, &method, params).transpose();
                            result.map(|result| response(&id, result))
                        }
                        (None, Some(method)) => {
                            self.notice(&method, &params)?;
                            None
                        }
                        (Some(_), None) => None,
                        (None, None) => Some(invalid_message()),
                    }
                }
            };
            if let Some(answer) = answer {
                self.send(answer);
            }
        }
        Ok(())
    }

    /// Does not wait for a client that reads no answers: the end of its input must be noticed.
    fn send(&self, answer: Value) {
        if let Err(TrySendError::Full(answer)) = self.output.try_send(answer) {
            let output = self.output.clone();
            self.calls.spawn(async move {
                let _closed = output.send(answer).await;
            });
        }
    }

    /// Waits for the calls, whose requests were withdrawn.
    pub async fn end(self) {
        self.calls.close();
        self.calls.wait().await;
    }

    fn notice(&self, method: &str, params: &RpcParams) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.has_handshake.is_some(),
            "the first message was not an initialize request"
        );
        if method == "notifications/cancelled"
            && let Some(id) = params.members.get("requestId")
            && let Ok(id) = RequestId::deserialize(id)
            && let Some(call) = lock(&self.running).remove(&id)
        {
            call.1.cancel();
        }
        Ok(())
    }

    /// `None` for the call of a tool, which answers when it is done.
    fn answer(
        &mut self,
        id: &RequestId,
        method: &str,
        params: RpcParams,
    ) -> Result<Option<Value>, Value> {
        if method == "initialize"
            && let Some(version) = negotiate(&params.members)
        {
            self.has_handshake.get_or_insert(true);
            return Ok(Some(json!({
                "protocolVersion": version,
                "capabilities": { "tools": {} },
                "serverInfo": server_info(),
                "instructions": INSTRUCTIONS,
            })));
        }
        if method == "ping" && self.has_handshake.is_none() {
            return Ok(Some(json!({})));
        }
        let is_discovery = method == "server/discover";
        let meta = params.meta.clone().unwrap_or_default();
        let version = check_version(&meta)?;
        let is_stateless = version == Some(STATELESS);
        let needs_meta = is_stateless || is_discovery || self.has_handshake != Some(true);
        if needs_meta {
            check_meta(&meta)?;
        }
        if !is_discovery {
            self.has_handshake.get_or_insert(false);
        }
        let mut result = match method {
            "server/discover" => json!({
                "supportedVersions": VERSIONS,
                "capabilities": { "tools": {} },
                "instructions": INSTRUCTIONS,
                "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
            }),
            "ping" if !needs_meta => json!({}),
            "tools/list" => json!({ "tools": tools() }),
            "tools/call" => {
                self.begin_call(id.clone(), params, is_stateless)?;
                return Ok(None);
            }
            // Some clients ask for these although the server does not offer them.
            "prompts/list" => json!({ "prompts": [] }),
            "resources/list" => json!({ "resources": [] }),
            "completion/complete" => json!({ "completion": { "values": [] } }),
            "resources/templates/list" => json!({ "resourceTemplates": [] }),
            _ => return Err(error(-32_601, "method: this server only has tools")),
        };
        if is_stateless {
            result["resultType"] = "complete".into();
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        Ok(Some(result))
    }

    fn begin_call(
        &self,
        id: RequestId,
        mut params: RpcParams,
        is_stateless: bool,
    ) -> Result<(), Value> {
        let arguments = params.members.remove("arguments");
        let (name, arguments) = match (params.members.remove("name"), arguments) {
            (Some(Value::String(name)), None | Some(Value::Null)) => (name, JsonObject::new()),
            (Some(Value::String(name)), Some(Value::Object(arguments))) => (name, arguments),
            _ => {
                return Err(invalid_params(
                    "params: expected an object with name, a text, and arguments, an object",
                ));
            }
        };
        let call = ToolCall {
            requests: Arc::clone(&self.requests),
            output: self.output.clone(),
            progress_token: params
                .meta
                .and_then(|mut meta| meta.remove("progressToken"))
                .filter(|token| token.is_string() || token.is_number()),
            cancelled: CancellationToken::new(),
        };
        let running = Arc::clone(&self.running);
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        match lock(&running).entry(id.clone()) {
            Entry::Occupied(_) => {
                return Err(error(-32_600, "id: a call with it is still running"));
            }
            Entry::Vacant(entry) => entry.insert((number, call.cancelled.clone())),
        };
        self.calls.spawn(async move {
            let mut result = call.run(&name, arguments).await;
            if is_stateless && let Ok(result) = &mut result {
                result["resultType"] = "complete".into();
            }
            // A cancelled call gets no answer, and must not answer the next call under its id.
            let is_awaited = match lock(&running).entry(id.clone()) {
                Entry::Occupied(entry) if entry.get().0 == number => {
                    entry.remove();
                    true
                }
                _ => false,
            };
            if is_awaited {
                let _closed = call.output.send(response(&id, result)).await;
            }
        });
        Ok(())
    }
}

fn invalid_message() -> Value {
    json!({ "jsonrpc": "2.0", "error": error(-32_600, "Invalid request") })
}

fn lock(running: &Mutex<RunningCalls>) -> MutexGuard<'_, RunningCalls> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The version to speak after `initialize`. `None` if its parameters are incomplete.
fn negotiate(params: &JsonObject) -> Option<&str> {
    let version = params.get("protocolVersion")?.as_str()?;
    let client = params.get("clientInfo")?;
    let is_complete = params.get("capabilities")?.is_object()
        && client["name"].is_string()
        && client["version"].is_string();
    let is_known = version != STATELESS && VERSIONS.contains(&version);
    is_complete.then_some(if is_known { version } else { NEWEST_HANDSHAKE })
}

fn check_version(meta: &JsonObject) -> Result<Option<&str>, Value> {
    let version = meta.get(META_VERSION).and_then(Value::as_str);
    if version.is_none_or(|version| VERSIONS.contains(&version)) {
        return Ok(version);
    }
    let mut error = error(-32_022, "Unsupported protocol version");
    error["data"] = json!({ "requested": version, "supported": VERSIONS });
    Err(error)
}

fn check_meta(meta: &JsonObject) -> Result<(), Value> {
    let mut missing = Vec::new();
    if !meta.get(META_VERSION).is_some_and(Value::is_string) {
        missing.push(META_VERSION);
    }
    if !meta.get(META_CAPABILITIES).is_some_and(Value::is_object) {
        missing.push(META_CAPABILITIES);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(invalid_params(&format!(
        "request _meta is missing or has malformed required fields: {missing}"
    )))
}

fn server_info() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({ "name": "countersign", "title": "Countersign", "version": version })
}
