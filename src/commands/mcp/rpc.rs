//! JSON-RPC 2.0 with one message per line.

use std::io;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;
use serde_json::{Map, Number, Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// A longer message is dropped. The content of a request has at most 4 MiB, and takes more when it
/// is escaped.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub type JsonObject = Map<String, Value>;
pub type RpcResult = Result<Value, Value>;

#[derive(Deserialize)]
pub struct RpcMessage {
    #[serde(rename = "jsonrpc")]
    _version: RpcVersion,
    #[serde(default, deserialize_with = "present")]
    pub id: Option<RequestId>,
    /// `None` in a response. This server sends no requests, so nothing waits for one.
    pub method: Option<String>,
    pub params: Option<RpcParams>,
}

#[derive(Deserialize)]
enum RpcVersion {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Deserialize, Serialize, Clone, PartialEq, Eq, Hash)]
#[serde(untagged)]
pub enum RequestId {
    Number(Number),
    Text(String),
}

/// An id that is there. `null` is no id: the answer to it would reach nobody.
fn present<'de, D: Deserializer<'de>>(id: D) -> Result<Option<RequestId>, D::Error> {
    RequestId::deserialize(id).map(Some)
}

#[derive(Deserialize, Default)]
pub struct RpcParams {
    #[serde(rename = "_meta")]
    pub meta: Option<JsonObject>,
    #[serde(flatten)]
    pub members: JsonObject,
}

pub fn response(id: &RequestId, result: RpcResult) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
}

pub fn error(code: i32, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

pub fn invalid_params(message: &str) -> Value {
    error(-32_602, message)
}

pub struct MessageReader<R> {
    input: R,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> MessageReader<R> {
    pub fn new(input: R) -> Self {
        let line = Vec::new();
        Self { input, line }
    }

    /// `None` at the end of the input, `Err` for JSON that is no message. A line that is no JSON is
    /// passed over: two confused peers could answer each other for ever.
    pub async fn next(&mut self) -> io::Result<Option<serde_json::Result<RpcMessage>>> {
        while self.read_line().await? {
            let line = self.line.as_slice();
            let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            match serde_json::from_slice(line) {
                Err(error) if error.classify() != Category::Data => {}
                message => return Ok(Some(message)),
            }
        }
        Ok(None)
    }

    /// False at the end of the input. An unfinished line there is no message.
    async fn read_line(&mut self) -> io::Result<bool> {
        let mut is_too_long = false;
        loop {
            self.line.clear();
            let mut input = (&mut self.input).take(MAX_MESSAGE_BYTES as u64);
            let count = input.read_until(b'\n', &mut self.line).await?;
            if self.line.ends_with(b"\n") {
                if !is_too_long {
                    return Ok(true);
                }
                is_too_long = false;
            } else if count < MAX_MESSAGE_BYTES {
                return Ok(false);
            } else if !is_too_long {
                is_too_long = true;
                let max_line_length = MAX_MESSAGE_BYTES;
                tracing::error!(
                    max_line_length,
                    "Incoming message exceeded the maximum line length, discarding it"
                );
            }
        }
    }
}
