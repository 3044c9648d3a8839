//! A model on loopback that makes an agent call tools. It speaks the streaming forms of the
//! vendors' APIs, answers a request that offers the next tool with a call of it, and keeps what it
//! is told of its calls.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

pub struct Call {
    /// Codex has namespaces: `space/name`.
    tool: String,
    input: Value,
}

impl Call {
    pub fn new(tool: &str, input: Value) -> Self {
        Self {
            tool: tool.to_owned(),
            input,
        }
    }
}

pub struct Model {
    pub url: String,
    play: Arc<Mutex<Play>>,
}

#[derive(Default)]
struct Play {
    left: VecDeque<Call>,
    told: Vec<String>,
}

fn lock(play: &Mutex<Play>) -> MutexGuard<'_, Play> {
    match play.lock() {
        Ok(play) => play,
        Err(poisoned) => poisoned.into_inner(),
    }
}

impl Model {
    pub async fn start() -> anyhow::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let play = Arc::<Mutex<Play>>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&play));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, play })
    }

    /// Begins anew, with these calls to make.
    pub fn play(&self, calls: Vec<Call>) {
        *lock(&self.play) = Play {
            left: calls.into(),
            told: Vec::new(),
        };
    }

    /// The results of its calls, in order.
    pub fn told(&self) -> Vec<String> {
        lock(&self.play).told.clone()
    }
}

async fn answer(State(play): State<Arc<Mutex<Play>>>, uri: Uri, body: Bytes) -> Response {
    let path = uri.path();
    let api = if path.ends_with("/messages") {
        Api::Messages
    } else if path.ends_with("/responses") {
        Api::Responses
    } else if path.ends_with("/chat/completions") {
        Api::Chat
    } else if path.ends_with("enerateContent") {
        Api::Gemini
    } else {
        // Lists of models, counts of tokens.
        return whole_body(
            &json!({ "data": [], "models": [], "input_tokens": 1, "totalTokens": 1 }),
        );
    };
    let request = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let results = api.results(&request);
    let made = results.len();
    let mut play = lock(&play);
    let offered = (play.left.front()).is_some_and(|call| offers(&request, &call.tool));
    let call = if offered { play.left.pop_front() } else { None };
    if made > 0 {
        play.told = results;
    }
    let streamed = request["stream"] == true || path.contains("stream");
    api.reply(call.as_ref(), made, streamed)
}

#[derive(Clone, Copy)]
enum Api {
    Messages,
    Responses,
    Chat,
    Gemini,
}

impl Api {
    fn results(self, request: &Value) -> Vec<String> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        match self {
            Self::Messages => list(&request["messages"])
                .iter()
                .flat_map(|message| list(&message["content"]))
                .filter(|part| part["type"] == "tool_result")
                .map(|part| text(&part["content"]))
                .collect(),
            Self::Responses => list(&request["input"])
                .iter()
                .filter(|item| {
                    item["type"]
                        .as_str()
                        .is_some_and(|kind| kind.ends_with("call_output"))
                })
                .map(|item| text(&item["output"]))
                .collect(),
            Self::Chat => list(&request["messages"])
                .iter()
                .filter(|message| message["role"] == "tool")
                .map(|message| text(&message["content"]))
                .collect(),
            Self::Gemini => list(&request["contents"])
                .iter()
                .flat_map(|content| list(&content["parts"]))
                .filter(|part| part["functionResponse"].is_object())
                .map(|part| part["functionResponse"]["response"].to_string())
                .collect(),
        }
    }

    fn reply(self, call: Option<&Call>, made: usize, streamed: bool) -> Response {
        match self {
            Self::Messages => messages(call, made, streamed),
            Self::Responses => responses(call, made, streamed),
            Self::Chat => chat(call, made, streamed),
            Self::Gemini => gemini(call, streamed),
        }
    }
}

/// Whether a request offers a tool. Each API nests the names of its tools differently; Codex has
/// namespaces (`space/name`).
fn offers(request: &Value, tool: &str) -> bool {
    let name = tool.rsplit('/').next();
    let mut found = false;
    names(&request["tools"], &mut |offered| {
        found |= Some(offered) == name;
    });
    found
}

fn names(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        Value::Object(members) => {
            if let Some(Value::String(name)) = members.get("name") {
                found(name);
            }
            for key in [
                "function",
                "functionDeclarations",
                "function_declarations",
                "tools",
            ] {
                if let Some(inner) = members.get(key) {
                    names(inner, found);
                }
            }
        }
        _ => {}
    }
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        other => other.to_string(),
    }
}

fn events(named: bool, events: &[Value], end: &str) -> Response {
    let mut body = String::new();
    for event in events {
        if named && let Some(kind) = event["type"].as_str() {
            let _infallible = writeln!(body, "event: {kind}");
        }
        let _infallible = write!(body, "data: {event}\n\n");
    }
    body.push_str(end);
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn messages(call: Option<&Call>, made: usize, streamed: bool) -> Response {
    let usage = json!({"input_tokens": 10, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    let stop = if call.is_some() {
        "tool_use"
    } else {
        "end_turn"
    };
    let block = |input: Value| match call {
        Some(call) => {
            json!({"type": "tool_use", "id": format!("toolu_{made}"), "name": call.tool, "input": input})
        }
        None => json!({"type": "text", "text": "done"}),
    };
    let mut message = json!({"id": "msg_01", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    if !streamed {
        message["content"] = json!([block(call.map_or(json!({}), |call| call.input.clone()))]);
        message["stop_reason"] = json!(stop);
        return whole_body(&message);
    }
    let (start, delta) = match call {
        Some(call) => (
            block(json!({})),
            json!({"type": "input_json_delta", "partial_json": call.input.to_string()}),
        ),
        None => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": "done"}),
        ),
    };
    events(
        true,
        &[
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": start}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
            json!({"type": "message_stop"}),
        ],
        "",
    )
}

fn responses(call: Option<&Call>, made: usize, streamed: bool) -> Response {
    let id = format!("call_{made}");
    let item = match call {
        Some(Call {
            tool,
            input: Value::String(input),
        }) => {
            json!({"type": "custom_tool_call", "id": "ctc_01", "call_id": id, "name": tool, "input": input, "status": "completed"})
        }
        Some(call) => {
            let (namespace, name) = match call.tool.split_once('/') {
                Some((space, name)) => (Some(space), name),
                None => (None, call.tool.as_str()),
            };
            let mut item = json!({"type": "function_call", "id": "fc_01", "call_id": id, "name": name,
                "arguments": call.input.to_string(), "status": "completed"});
            if let Some(space) = namespace {
                item["namespace"] = json!(space);
            }
            item
        }
        None => {
            json!({"type": "message", "id": "msg_01", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "done", "annotations": []}]})
        }
    };
    let response = |status: &str, output: Vec<Value>| {
        json!({"id": "resp_01", "object": "response", "created_at": 1, "model": "fake", "status": status, "output": output,
            "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}})
    };
    if !streamed {
        return whole_body(&response("completed", vec![item]));
    }
    events(
        true,
        &[
            json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", vec![])}),
            json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item}),
            json!({"type": "response.completed", "sequence_number": 3, "response": response("completed", vec![item.clone()])}),
        ],
        "",
    )
}

fn chat(call: Option<&Call>, made: usize, streamed: bool) -> Response {
    let mut message = match call {
        Some(call) => {
            json!({"role": "assistant", "content": null, "tool_calls": [{"index": 0, "id": format!("call_{made}"), "type": "function",
            "function": {"name": call.tool, "arguments": call.input.to_string()}}]})
        }
        None => json!({"role": "assistant", "content": "done"}),
    };
    let stop = if call.is_some() { "tool_calls" } else { "stop" };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20});
    let whole = |object: &str, choice: Value| json!({"id": "chatcmpl-01", "object": object, "created": 1, "model": "fake", "choices": [choice], "usage": usage});
    if !streamed {
        let calls = message["tool_calls"].as_array_mut();
        for call in calls.into_iter().flatten() {
            if let Some(call) = call.as_object_mut() {
                call.remove("index");
            }
        }
        return whole_body(&whole(
            "chat.completion",
            json!({"index": 0, "message": message, "finish_reason": stop}),
        ));
    }
    events(
        false,
        &[
            whole(
                "chat.completion.chunk",
                json!({"index": 0, "delta": message, "finish_reason": null}),
            ),
            whole(
                "chat.completion.chunk",
                json!({"index": 0, "delta": {}, "finish_reason": stop}),
            ),
        ],
        "data: [DONE]\n\n",
    )
}

fn gemini(call: Option<&Call>, streamed: bool) -> Response {
    let part = match call {
        Some(call) => json!({"functionCall": {"name": call.tool, "args": call.input}}),
        None => json!({"text": "done"}),
    };
    let whole = json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}, "modelVersion": "fake"});
    if streamed {
        events(false, &[whole], "")
    } else {
        whole_body(&whole)
    }
}

fn whole_body(value: &Value) -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
        .into_response()
}
