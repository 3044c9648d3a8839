//! An agent's end of the pipes. Every output of the server must be JSON-RPC, and answers must be as
//! its schemas say.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;

use crate::client::people::{ClientScene, PATIENCE};
use crate::support::process::countersign;
use crate::support::until;

pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    lines: Arc<Mutex<Vec<Value>>>,
    remarks: Arc<Mutex<String>>,
    /// They end with what they read from.
    readers: [JoinHandle<()>; 2],
    calls: u64,
    output_schema: Value,
}

impl Agent {
    /// A server that was not spoken to yet.
    pub fn spawn(world: &ClientScene, profile: &str) -> Self {
        let mut command = Command::from(countersign());
        command
            .env("XDG_CONFIG_HOME", world.directory.path())
            .args(["mcp", "--profile", profile])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let (lines, remarks) = (Arc::default(), Arc::default());
        let (output, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let written: Arc<Mutex<Vec<Value>>> = Arc::clone(&lines);
        let reads_output = tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(line)) = output.next_line().await {
                // Other output is kept as a text, which no test takes for an answer.
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                written.lock().unwrap().push(line);
            }
        });
        let said: Arc<Mutex<String>> = Arc::clone(&remarks);
        let reads_errors = tokio::spawn(async move {
            let (mut errors, mut buffer) = (errors, vec![0; 4_096]);
            while let Ok(count @ 1..) = errors.read(&mut buffer).await {
                let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                said.lock().unwrap().push_str(&text);
            }
        });
        Self {
            child,
            input,
            lines,
            remarks,
            readers: [reads_output, reads_errors],
            calls: 0,
            output_schema: Value::Null,
        }
    }

    /// A server that is ready for calls.
    pub async fn start(world: &ClientScene) -> Self {
        Self::start_with(world, "bot").await
    }

    pub async fn start_with(world: &ClientScene, profile: &str) -> Self {
        let mut agent = Self::spawn(world, profile);
        agent.initialize("2025-06-18").await;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        agent.send(&initialized).await;
        let tools = agent.request("tools/list", json!({})).await;
        agent.output_schema = tools["result"]["tools"][0]["outputSchema"].clone();
        assert_eq!(agent.output_schema["type"], "object", "{tools}");
        agent
    }

    pub async fn initialize(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "a test", "version": "1" },
        });
        self.request("initialize", params).await
    }

    pub async fn send(&mut self, message: &Value) {
        self.write(&format!("{message}\n")).await;
    }

    pub async fn write(&mut self, text: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text.as_bytes()).await.unwrap();
        input.flush().await.unwrap();
    }

    /// Everything it has written so far.
    pub fn lines(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap().clone();
        for line in &lines {
            assert_eq!(line["jsonrpc"], "2.0", "{line}");
        }
        lines
    }

    pub fn remarks(&self) -> String {
        self.remarks.lock().unwrap().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.calls += 1;
        let id = self.calls;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request).await;
        id
    }

    /// The call of a tool, which is not waited for.
    pub async fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        let params = json!({ "name": tool, "arguments": arguments });
        self.begin("tools/call", params).await
    }

    pub fn has_answered(&self, id: u64) -> bool {
        self.lines().iter().any(|line| line["id"] == id)
    }

    pub async fn answer(&self, id: u64) -> Value {
        let what = format!("an answer to {id}; remarks: {}", self.remarks());
        until(&what, PATIENCE, async || self.has_answered(id)).await;
        let lines = self.lines();
        let mut answers = lines.iter().filter(|line| line["id"] == id);
        let answer = answers.next().unwrap().clone();
        assert!(answers.next().is_none(), "{id} was answered twice");
        answer
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    /// A tool's answer. It is the same in both forms, and as the schema says.
    pub async fn outcome(&self, id: u64) -> Value {
        let answer = self.answer(id).await;
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{answer}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let structured = &result["structuredContent"];
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *structured);
        self.check(structured);
        structured.clone()
    }

    fn check(&self, structured: &Value) {
        let schema = jsonschema::validator_for(&self.output_schema).unwrap();
        let problem = schema.validate(structured).err();
        assert!(problem.is_none(), "{problem:?}: {structured}");
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments).await;
        self.outcome(id).await
    }

    /// The text of a call that is an error, and so a denial.
    pub async fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let id = self.begin_call(tool, arguments).await;
        let answer = self.answer(id).await;
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        let structured = &result["structuredContent"];
        self.check(structured);
        assert_eq!(structured["outcome"], "denied", "{answer}");
        assert_eq!(structured["cause"], "error", "{answer}");
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.starts_with("denied: "), "{text}");
        text
    }

    /// A question that is left to itself.
    pub async fn ask(&mut self, text: &str) -> String {
        let arguments = json!({ "type": "plan", "text": text, "wait": false });
        let pending = self.call("request_approval", arguments).await;
        assert_eq!(pending["outcome"], "pending", "{pending}");
        pending["requestId"].as_str().unwrap().to_owned()
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.expect("it ends").unwrap();
        for reader in &mut self.readers {
            reader.await.unwrap();
        }
        (status, self.remarks())
    }
}
