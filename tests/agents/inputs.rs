//! The input of each agent at each event, and its result. The files are as the agents write them.

use std::path::{Path, PathBuf};

use countersign::agent::{
    Agent, BaseFile, EventKind, HookEvent, HookOutput, HookPolicy, HookVerdict, NamedPath,
    PolicyJudgement, WorkDirectories, normal,
};
use serde_json::{Value, json};

const MAIN: &str = "alpha\nbeta\ngamma\ngamma\n";
const NOTEBOOK: &str =
    r#"{"cells":[{"id":"c1","source":["x\n"]},{"id":"c2","source":["print(1)\n"]}]}"#;

fn inputs(agent: Agent) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/agents/inputs").join(agent.as_str())
}

fn read(agent: Agent, name: &str) -> HookEvent {
    let file = inputs(agent).join(format!("{name}.json"));
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    HookEvent::read(agent, &text).unwrap_or_else(|error| panic!("{agent} {name}: {error}"))
}

pub fn places() -> WorkDirectories {
    WorkDirectories {
        directory: "/srv/project".into(),
        project: "/srv/project".into(),
        home: Some("/home/dev".into()),
        own: "/home/dev/.config/countersign".into(),
        program: Some("/srv/project/bin/countersign".into()),
        moved: Vec::new(),
    }
}

pub fn named(places: &WorkDirectories, names: &[String]) -> Vec<NamedPath> {
    let resolve = |written: PathBuf| NamedPath {
        path: normal(&written),
        real: normal(&written),
    };
    (names.iter().flat_map(|name| places.readings(name)))
        .map(resolve)
        .collect()
}

fn judge(agent: Agent, event: &HookEvent, policy: &HookPolicy) -> PolicyJudgement {
    let (call, places) = (event.call().unwrap(), places());
    let names = named(&places, &call.named_paths().unwrap());
    policy.judge(agent, call, &places, Some(&names))
}

fn bases(event: &HookEvent) -> Vec<BaseFile> {
    let content = |path: &str| match path {
        path if path.ends_with("main.txt") => Some(MAIN.into()),
        path if path.ends_with("n.ipynb") => Some(NOTEBOOK.into()),
        _ => None,
    };
    let base = |given: &&str| BaseFile {
        given: (*given).to_owned(),
        path: places().absolute(given).to_str().unwrap().to_owned(),
        real: places().absolute(given).to_str().unwrap().to_owned(),
        content: content(given),
    };
    (event.call().unwrap().changed_files().unwrap().iter())
        .map(base)
        .collect()
}

/// Whether it is free without a policy, its class, and what the approver sees of it.
fn shown(agent: Agent, name: &str) -> (bool, &'static str, Value) {
    let event = read(agent, name);
    let call = event.call().unwrap();
    let is_free = judge(agent, &event, &HookPolicy::default()) == PolicyJudgement::NotAsked;
    let proposal = call.propose(agent, "/srv/project", &bases(&event)).unwrap();
    let mut payload = Value::Object(proposal.payload);
    assert_eq!(payload["agent"], agent.as_str());
    assert_eq!(payload["tool"], call.tool);
    for member in ["agent", "tool"] {
        payload.as_object_mut().unwrap().remove(member);
    }
    if payload["directory"] == "/srv/project" {
        payload.as_object_mut().unwrap().remove("directory");
    }
    (is_free, call.action.class(), payload)
}

fn command(command: &str) -> Value {
    json!({ "kind": "command", "command": command })
}

fn main_hash() -> String {
    let base = BaseFile {
        given: String::new(),
        path: String::new(),
        real: String::new(),
        content: Some(MAIN.into()),
    };
    base.sha256().unwrap()
}

fn patch(path: &str, hash: Option<&str>, patch: &str) -> Value {
    let files = json!([{ "path": path, "sha256": hash }]);
    json!({ "kind": "patch", "patch": patch, "files": files })
}

const BETA: &str = "--- a/src/main.txt\n+++ b/src/main.txt\n@@ -1,4 +1,4 @@\n alpha\n-beta\n+BETA\n gamma\n gamma\n";
const NEW: &str = "--- /dev/null\n+++ b/src/new.txt\n@@ -0,0 +1 @@\n+one\n";

fn beta() -> Value {
    patch("/srv/project/src/main.txt", Some(&main_hash()), BETA)
}

fn new_file() -> Value {
    patch("/srv/project/src/new.txt", None, NEW)
}

fn with(mut value: Value, member: &str, more: Value) -> Value {
    value[member] = more;
    value
}

fn tool(input: &Value) -> Value {
    json!({ "kind": "tool", "input": input })
}

fn mcp(server: Option<&str>, name: &str, input: &Value) -> Value {
    with(
        tool(input),
        "mcp",
        json!({ "server": server, "tool": name }),
    )
}

#[test]
fn every_recorded_input_is_understood_and_says_whose_session_it_is() {
    for agent in Agent::ALL {
        let mut count = 0;
        for file in std::fs::read_dir(inputs(agent)).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read(&path).unwrap();
            let event = HookEvent::read(agent, &text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(event.session.is_some(), "{}", path.display());
            assert!(event.directory.is_some(), "{}", path.display());
            count += 1;
        }
        assert!(count > 8, "{agent}");
    }
}

#[test]
fn calls_of_claude_code_are_shown_whole() {
    let rows = [
        (
            "PreToolUse-Bash",
            (false, "command"),
            with(
                command("git status --short"),
                "options",
                json!({ "description": "Show changed files" }),
            ),
        ),
        (
            "PreToolUse-Bash-background",
            (false, "command"),
            json!({
                "kind": "command", "command": "npm run dev > /tmp/dev.log 2>&1", "background": true,
                "options": { "description": "Start the server", "timeout": 60000 },
            }),
        ),
        (
            "PreToolUse-Bash-subagent",
            (false, "command"),
            command("ls"),
        ),
        (
            "PreToolUse-Write",
            (false, "edit"),
            patch(
                "/srv/project/src/new.txt",
                None,
                "--- /dev/null\n+++ b/src/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n",
            ),
        ),
        ("PreToolUse-Edit", (false, "edit"), beta()),
        (
            "PreToolUse-MultiEdit",
            (false, "edit"),
            patch(
                "/srv/project/src/main.txt",
                Some(&main_hash()),
                "--- a/src/main.txt\n+++ b/src/main.txt\n@@ -1,4 +1,4 @@\n-alpha\n+a\n beta\n-gamma\n-gamma\n+g\n+g\n",
            ),
        ),
        (
            "PreToolUse-WebFetch",
            (false, "web"),
            tool(&json!({ "url": "https://example.org/", "prompt": "What is it about?" })),
        ),
        (
            "PreToolUse-mcp",
            (false, "mcp"),
            mcp(
                Some("tickets"),
                "close",
                &json!({ "id": 42, "comment": "done" }),
            ),
        ),
        (
            "PreToolUse-ExitPlanMode",
            (false, "plan"),
            json!({
                "kind": "plan", "text": "# Plan\n\n1. Look\n2. Change\n",
                "options": { "planFilePath": "/home/dev/.claude/plans/x.md" },
            }),
        ),
        (
            "PreToolUse-ExitPlanMode-empty",
            (false, "other"),
            tool(&json!({})),
        ),
        (
            "PreToolUse-unknown",
            (false, "other"),
            tool(&json!({ "to": "production" })),
        ),
        (
            "PreToolUse-Read",
            (true, "read"),
            tool(&json!({ "file_path": "/srv/project/src/main.txt" })),
        ),
        (
            "PreToolUse-Grep",
            (true, "read"),
            tool(&json!({ "pattern": "retry", "path": "src", "output_mode": "content" })),
        ),
        (
            "PreToolUse-Agent",
            (true, "internal"),
            tool(&json!({
                "description": "look around", "prompt": "Find the tests", "subagent_type": "Explore",
            })),
        ),
    ];
    for (name, (is_free, class), payload) in rows {
        assert_eq!(
            shown(Agent::Claude, name),
            (is_free, class, payload),
            "{name}"
        );
    }
    let (is_free, class, notebook) = shown(Agent::Claude, "PreToolUse-NotebookEdit");
    assert_eq!((is_free, class), (false, "edit"));
    let expected =
        "--- a/n.ipynb (cell c2)\n+++ b/n.ipynb (cell c2)\n@@ -1 +1 @@\n-print(1)\n+print(2)\n";
    assert_eq!(notebook["patch"], expected);
    assert_eq!(notebook["options"], json!({ "cell_type": "code" }));
    assert!(notebook["files"][0]["sha256"].is_string());
    assert!(shown(Agent::Claude, "PreToolUse-TodoWrite").0);
}

#[test]
fn calls_of_codex_gemini_and_copilot_are_shown_whole() {
    use Agent::{Codex, Copilot, Gemini};
    let rows = [
        (
            Codex,
            "PreToolUse-Bash",
            (false, "command"),
            command("rg -n retry src"),
        ),
        (
            Codex,
            "PreToolUse-mcp",
            (false, "mcp"),
            mcp(Some("tickets"), "close", &json!({ "id": 42 })),
        ),
        (
            Codex,
            "PreToolUse-unknown",
            (false, "other"),
            tool(&json!({ "session_id": 1, "chars": "rm -rf /\n" })),
        ),
        (
            Gemini,
            "BeforeTool-run_shell_command",
            (false, "command"),
            json!({
                "kind": "command", "command": "npm test", "directory": "/srv/project/web",
                "options": { "description": "Run the tests" },
            }),
        ),
        (Gemini, "BeforeTool-write_file", (false, "edit"), new_file()),
        (
            Gemini,
            "BeforeTool-replace",
            (false, "edit"),
            with(beta(), "options", json!({ "instruction": "Upper case" })),
        ),
        (
            Gemini,
            "BeforeTool-web_fetch",
            (false, "web"),
            tool(&json!({ "prompt": "Read https://example.org/" })),
        ),
        (
            Gemini,
            "BeforeTool-mcp",
            (false, "mcp"),
            mcp(Some("tickets"), "close", &json!({ "id": 42 })),
        ),
        (
            Gemini,
            "BeforeTool-save_memory",
            (false, "other"),
            tool(&json!({ "fact": "x" })),
        ),
        (
            Gemini,
            "BeforeTool-glob",
            (true, "read"),
            tool(&json!({ "pattern": "**/*.rs" })),
        ),
        (
            Copilot,
            "preToolUse-bash",
            (false, "command"),
            with(
                command("make"),
                "options",
                json!({ "description": "Build" }),
            ),
        ),
        (
            Copilot,
            "preToolUse-text",
            (false, "command"),
            with(
                command("make"),
                "options",
                json!({ "description": "Build" }),
            ),
        ),
        (
            Copilot,
            "preToolUse-bash-async",
            (false, "command"),
            json!({
                "kind": "command", "command": "make serve", "background": true,
                "options": { "description": "Serve", "detach": true },
            }),
        ),
        (Copilot, "preToolUse-create", (false, "edit"), new_file()),
        (Copilot, "preToolUse-edit", (false, "edit"), beta()),
        (
            Copilot,
            "preToolUse-mcp",
            (false, "other"),
            tool(&json!({ "id": 42 })),
        ),
        (
            Copilot,
            "preToolUse-write_bash",
            (false, "other"),
            tool(&json!({ "sessionId": "s", "input": "y{enter}" })),
        ),
        (
            Copilot,
            "preToolUse-view",
            (true, "read"),
            tool(&json!({ "path": "/srv/project/src/main.txt" })),
        ),
    ];
    for (agent, name, (is_free, class), payload) in rows {
        assert_eq!(
            shown(agent, name),
            (is_free, class, payload),
            "{agent} {name}"
        );
    }
    let (is_free, class, patch) = shown(Codex, "PreToolUse-apply_patch");
    assert_eq!((is_free, class), (false, "edit"));
    assert!(
        patch["patch"]
            .as_str()
            .unwrap()
            .starts_with("*** Begin Patch")
    );
    let files = json!([
        { "path": "/srv/project/src/main.txt", "sha256": main_hash() },
        { "path": "/srv/project/src/new.txt", "sha256": null },
    ]);
    assert_eq!(patch["files"], files);
    let (_, _, many) = shown(Gemini, "BeforeTool-replace-many");
    assert!(
        many["patch"]
            .as_str()
            .unwrap()
            .contains("-gamma\n-gamma\n+g\n+g\n")
    );
}

#[test]
fn calls_of_opencode_and_cursor_are_shown_whole() {
    use Agent::{Cursor, Opencode};
    let whole = "--- a/src/main.txt\n+++ b/src/main.txt\n@@ -1,4 +1 @@\n-alpha\n-beta\n-gamma\n-gamma\n+all new\n";
    let gone =
        "--- a/src/main.txt\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-alpha\n-beta\n-gamma\n-gamma\n";
    let main = "/srv/project/src/main.txt";
    let rows = [
        (
            Opencode,
            "tool.execute.before-bash",
            (false, "command"),
            with(
                command("bun test"),
                "options",
                json!({ "description": "Run the tests" }),
            ),
        ),
        (
            Opencode,
            "tool.execute.before-write",
            (false, "edit"),
            new_file(),
        ),
        (
            Opencode,
            "tool.execute.before-edit",
            (false, "edit"),
            beta(),
        ),
        (
            Opencode,
            "tool.execute.before-edit-whole",
            (false, "edit"),
            patch(main, Some(&main_hash()), whole),
        ),
        (
            Opencode,
            "tool.execute.before-mcp",
            (false, "other"),
            tool(&json!({ "id": 42 })),
        ),
        (
            Opencode,
            "tool.execute.before-webfetch",
            (false, "web"),
            tool(&json!({ "url": "https://example.org/", "format": "markdown" })),
        ),
        (
            Opencode,
            "tool.execute.before-read",
            (true, "read"),
            tool(&json!({ "filePath": main })),
        ),
        (
            Cursor,
            "preToolUse-Shell",
            (false, "command"),
            with(
                command("npm install"),
                "directory",
                "/srv/project/web".into(),
            ),
        ),
        (
            Cursor,
            "beforeShellExecution",
            (false, "command"),
            command("git push --force"),
        ),
        (Cursor, "preToolUse-Write", (false, "edit"), new_file()),
        (
            Cursor,
            "preToolUse-Write-other",
            (false, "other"),
            tool(&json!({ "file": "x", "text": "y" })),
        ),
        (Cursor, "preToolUse-StrReplace", (false, "edit"), beta()),
        (
            Cursor,
            "preToolUse-Delete",
            (false, "edit"),
            patch(main, Some(&main_hash()), gone),
        ),
        (
            Cursor,
            "preToolUse-MCP",
            (false, "mcp"),
            mcp(None, "close", &json!({ "id": 42 })),
        ),
        (
            Cursor,
            "beforeMCPExecution",
            (false, "mcp"),
            mcp(
                None,
                "close",
                &json!({ "id": 42, "server command": "node server.js" }),
            ),
        ),
        (
            Cursor,
            "preToolUse-Read",
            (true, "read"),
            tool(&json!({ "file_path": main })),
        ),
        (
            Cursor,
            "beforeReadFile",
            (true, "read"),
            tool(&json!({ "file_path": main })),
        ),
    ];
    for (agent, name, (is_free, class), payload) in rows {
        assert_eq!(
            shown(agent, name),
            (is_free, class, payload),
            "{agent} {name}"
        );
    }
}

#[test]
fn events_without_a_call_are_told_apart() {
    for (agent, name, kind) in [
        (Agent::Claude, "SessionStart", EventKind::SessionStart),
        (Agent::Claude, "SessionEnd", EventKind::SessionEnd),
        (Agent::Claude, "UserPromptSubmit", EventKind::Prompt),
        (Agent::Claude, "Stop", EventKind::Other),
        (Agent::Claude, "Notification", EventKind::Other),
        (Agent::Claude, "PostToolUse", EventKind::Other),
        (Agent::Codex, "SessionStart", EventKind::SessionStart),
        (Agent::Codex, "UserPromptSubmit", EventKind::Prompt),
        (Agent::Codex, "Stop", EventKind::TurnEnd),
        (Agent::Codex, "PostToolUse", EventKind::Other),
        (Agent::Gemini, "SessionStart", EventKind::SessionStart),
        (Agent::Gemini, "SessionEnd", EventKind::SessionEnd),
        (Agent::Gemini, "BeforeAgent", EventKind::Prompt),
        (Agent::Gemini, "AfterTool", EventKind::Other),
        (Agent::Copilot, "sessionStart", EventKind::SessionStart),
        (Agent::Copilot, "sessionEnd", EventKind::SessionEnd),
        (Agent::Copilot, "userPromptSubmitted", EventKind::Prompt),
        (Agent::Copilot, "postToolUse", EventKind::Other),
        (Agent::Copilot, "errorOccurred", EventKind::Other),
        (Agent::Opencode, "session.created", EventKind::SessionStart),
        (Agent::Opencode, "session.deleted", EventKind::SessionClose),
        (Agent::Opencode, "session.idle", EventKind::Other),
        (Agent::Opencode, "chat.message", EventKind::Prompt),
        (Agent::Cursor, "sessionStart", EventKind::SessionStart),
        (Agent::Cursor, "sessionEnd", EventKind::SessionEnd),
        (Agent::Cursor, "beforeSubmitPrompt", EventKind::Prompt),
        (Agent::Cursor, "afterFileEdit", EventKind::Other),
        (Agent::Cursor, "stop", EventKind::Other),
    ] {
        let event = read(agent, name);
        assert_eq!(event.kind, kind, "{agent} {name}");
        let silent = HookOutput::of(agent, &event, &HookVerdict::NotAsked, None);
        assert_eq!(
            (silent.status, silent.stderr.as_str()),
            (0, ""),
            "{agent} {name}"
        );
    }
}

#[test]
fn answers_are_in_the_form_of_each_agent() {
    let why = "alice rejected it: \"no\"";
    let claude = |decision: &str, reason: &str| {
        json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        } })
    };
    for (agent, name, denied, approved, not_asked) in [
        (
            Agent::Claude,
            "PreToolUse-Bash",
            claude("deny", why),
            Some(claude("allow", "approved by alice")),
            None,
        ),
        (
            Agent::Codex,
            "PreToolUse-Bash",
            claude("deny", why),
            None,
            None,
        ),
        (
            Agent::Gemini,
            "BeforeTool-glob",
            json!({ "decision": "deny", "reason": why }),
            Some(json!({ "decision": "allow" })),
            None,
        ),
        (
            Agent::Copilot,
            "preToolUse-bash",
            json!({ "permissionDecision": "deny", "permissionDecisionReason": why }),
            Some(json!({ "permissionDecision": "allow" })),
            None,
        ),
        (
            Agent::Opencode,
            "tool.execute.before-bash",
            json!({ "decision": "deny", "reason": why }),
            Some(json!({ "decision": "allow" })),
            Some(json!({ "decision": "allow" })),
        ),
        (
            Agent::Cursor,
            "preToolUse-Shell",
            json!({
                "permission": "deny",
                "user_message": format!("Countersign: {why}"),
                "agent_message": why,
            }),
            Some(json!({ "permission": "allow" })),
            Some(json!({})),
        ),
    ] {
        let event = read(agent, name);
        let text = |value: Option<Value>| value.map(|it| it.to_string()).unwrap_or_default();
        let output = HookOutput::of(agent, &event, &HookVerdict::Denied(why.to_owned()), None);
        assert_eq!(output.stdout, denied.to_string());
        assert_eq!(output.status, 2);
        assert_eq!(output.stderr, format!("countersign: denied: {why}"));
        let output = HookOutput::of(
            agent,
            &event,
            &HookVerdict::Approved("alice".to_owned()),
            None,
        );
        let expected = (text(approved), "", 0);
        assert_eq!(
            (output.stdout, output.stderr.as_str(), output.status),
            expected
        );
        let output = HookOutput::of(agent, &event, &HookVerdict::NotAsked, None);
        let expected = (text(not_asked), "", 0);
        assert_eq!(
            (output.stdout, output.stderr.as_str(), output.status),
            expected
        );
        // Unreadable input is denied too.
        let output = HookOutput::denied(agent, None, "cut off");
        assert_eq!(output.status, 2);
        assert!(output.stdout.contains("deny") && output.stderr.contains("cut off"));
    }
}

#[test]
fn context_for_the_model_goes_where_the_agent_takes_it() {
    let context = "A message from alice: hurry";
    for (agent, name, is_told) in [
        (Agent::Claude, "PreToolUse-Read", true),
        (Agent::Claude, "UserPromptSubmit", true),
        (Agent::Claude, "SessionStart", true),
        (Agent::Claude, "Stop", false),
        (Agent::Codex, "UserPromptSubmit", true),
        (Agent::Gemini, "BeforeAgent", false),
        (Agent::Copilot, "preToolUse-view", false),
        (Agent::Opencode, "chat.message", false),
        (Agent::Cursor, "preToolUse-Read", false),
    ] {
        let event = read(agent, name);
        let output = HookOutput::of(agent, &event, &HookVerdict::NotAsked, Some(context));
        assert_eq!(output.stdout.contains("hurry"), is_told, "{agent} {name}");
        if is_told {
            let told: Value = serde_json::from_str(&output.stdout).unwrap();
            let own = &told["hookSpecificOutput"];
            assert_eq!(own["hookEventName"], event.name);
            assert_eq!(own["additionalContext"], context);
            assert!(own.get("permissionDecision").is_none());
        }
    }
}

#[test]
fn what_is_not_understood_is_an_error_and_never_an_event() {
    let call = |tool: &str, input: Value| {
        json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/", "tool_name": tool,
            "tool_input": input,
        })
        .to_string()
    };
    for (agent, text, expected) in [
        (Agent::Claude, String::new(), "EOF"),
        (Agent::Claude, "[]".to_owned(), "expected a map"),
        (Agent::Claude, "{\"hook_event_name\":\"PreToo".to_owned(), "EOF"),
        (Agent::Claude, "{}".to_owned(), "hook_event_name: expected a text"),
        (Agent::Claude, json!({ "hook_event_name": "PermissionRequest" }).to_string(), "PermissionRequest"),
        (Agent::Claude, json!({ "hook_event_name": "PreToolUse" }).to_string(), "tool_name"),
        (Agent::Claude, call("Bash", json!("ls")), "tool_input: expected an object"),
        (Agent::Claude, call("Bash", json!({})), "command: expected a text"),
        (Agent::Claude, call("Bash", json!({ "command": ["ls"] })), "command: expected a text"),
        (
            Agent::Claude,
            call("Bash", json!({ "command": "ls", "run_in_background": "yes" })),
            "run_in_background",
        ),
        (Agent::Claude, call("Write", json!({ "file_path": "/x" })), "content: expected a text"),
        (Agent::Claude, call("MultiEdit", json!({ "file_path": "/x", "edits": {} })), "edits"),
        (Agent::Claude, call("MultiEdit", json!({ "file_path": "/x", "edits": [1] })), "edits"),
        (
            Agent::Claude,
            call("NotebookEdit", json!({ "notebook_path": "/x", "edit_mode": "melt" })),
            "edit_mode",
        ),
        (Agent::Codex, call("apply_patch", json!({ "patch": "x" })), "command: expected a text"),
        (Agent::Gemini, call("x", json!({})), "PreToolUse"),
        (
            Agent::Gemini,
            json!({ "hook_event_name": "BeforeTool", "tool_name": "x", "tool_input": {}, "mcp_context": 1 })
                .to_string(),
            "mcp_context",
        ),
        (Agent::Copilot, json!({ "sessionId": "s", "cwd": "/" }).to_string(), "which event"),
        (
            Agent::Copilot,
            json!({ "toolName": "bash", "toolArgs": { "command": "ls", "mode": "odd" } }).to_string(),
            "mode",
        ),
        (
            Agent::Copilot,
            json!({ "toolName": "bash", "toolArgs": "{" }).to_string(),
            "toolArgs: expected an object",
        ),
        (
            Agent::Copilot,
            json!({ "hookName": "permissionRequest", "toolName": "bash" }).to_string(),
            "permissionRequest",
        ),
        (Agent::Opencode, json!({ "event": "tool.execute.after" }).to_string(), "tool.execute.after"),
        (Agent::Opencode, json!({ "event": "tool.execute.before" }).to_string(), "tool: expected"),
        (Agent::Cursor, json!({ "hook_event_name": "beforeTeleport" }).to_string(), "beforeTeleport"),
        (
            Agent::Cursor,
            json!({ "hook_event_name": "beforeShellExecution", "command": 1 }).to_string(),
            "command",
        ),
    ] {
        let error = HookEvent::read(agent, text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(error.starts_with(agent.title()), "{error}");
    }
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    assert!(HookEvent::read(Agent::Claude, deep.as_bytes()).is_err());
    let large = vec![b' '; countersign::agent::MAX_INPUT_BYTES + 1];
    let error = HookEvent::read(Agent::Claude, &large)
        .unwrap_err()
        .to_string();
    assert!(error.contains("larger than 8 MiB"), "{error}");
    assert!(HookEvent::read(Agent::Claude, b"\xff{}").is_err());
}
