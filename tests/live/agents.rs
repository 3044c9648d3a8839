//! How each agent is pointed at the model on loopback, run without a person, and made to call a
//! tool.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use countersign::agent::Agent;
use serde_json::{Value, json};
use tokio::process::Command;

use super::mcp;
use super::model::Call;

/// Those that npm has. Cursor's agent is not among them.
pub const MEASURED: [Agent; 5] = [
    Agent::Claude,
    Agent::Codex,
    Agent::Copilot,
    Agent::Gemini,
    Agent::Opencode,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    Shell,
    Edit,
    Mcp,
}

/// The file that an edit changes.
pub const BEFORE: &str = "one\ntwo\n";

impl Tool {
    pub const ALL: [Self; 3] = [Self::Shell, Self::Edit, Self::Mcp];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Edit => "edit",
            Self::Mcp => "mcp",
        }
    }

    /// The file that it writes.
    pub fn file(self, project: &Path) -> PathBuf {
        project.join(match self {
            Self::Shell => "ran.txt",
            Self::Edit => "file.txt",
            Self::Mcp => "written.txt",
        })
    }

    /// Whether the call was executed.
    pub fn happened(self, project: &Path) -> bool {
        let text = std::fs::read_to_string(self.file(project));
        match self {
            Self::Shell | Self::Mcp => text.is_ok(),
            Self::Edit => text.is_ok_and(|text| text.contains("three")),
        }
    }
}

/// An agent with a home of its own.
pub struct Setting<'a> {
    pub agent: Agent,
    pub programs: &'a Path,
    pub home: &'a Path,
    pub project: &'a Path,
    pub model: &'a str,
}

impl Setting<'_> {
    /// The user's own configuration, from before our hook is installed.
    pub fn configure(&self) -> anyhow::Result<()> {
        let server = std::env::current_exe()?;
        let server = server.to_str().context("a path that is no text")?;
        let local = json!({ "command": server, "args": [mcp::ARGUMENT] });
        match self.agent {
            Agent::Claude => self.write("mcp.json", &json!({ "mcpServers": { "files": local } }).to_string()),
            Agent::Codex => self.write(
                ".codex/config.toml",
                &format!(
                    "model_provider = \"loopback\"\nsandbox_mode = \"danger-full-access\"\n\n\
                     [model_providers.loopback]\nname = \"loopback\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\n\
                     env_key = \"LOOPBACK_KEY\"\n\n\
                     [mcp_servers.files]\ncommand = {}\nargs = [\"{}\"]\n",
                    self.model,
                    Value::from(server),
                    mcp::ARGUMENT,
                ),
            ),
            Agent::Copilot => {
                let mut local = local;
                local["type"] = "local".into();
                local["tools"] = json!(["*"]);
                self.write(".copilot/mcp-config.json", &json!({ "mcpServers": { "files": local } }).to_string())
            }
            Agent::Gemini => {
                let mut local = local;
                local["trust"] = true.into();
                let settings = json!({
                    "security": { "auth": { "selectedType": "gemini-api-key" } },
                    "mcpServers": { "files": local },
                });
                self.write(".gemini/settings.json", &settings.to_string())
            }
            Agent::Opencode => {
                let model = json!({ "name": "model", "tool_call": true, "limit": { "context": 100_000, "output": 8_000 } });
                let settings = json!({
                    "autoupdate": false,
                    "share": "disabled",
                    "model": "loopback/model",
                    "small_model": "loopback/model",
                    "enabled_providers": ["loopback"],
                    "provider": { "loopback": {
                        "npm": "@ai-sdk/openai-compatible",
                        "name": "loopback",
                        "options": { "baseURL": format!("{}/v1", self.model), "apiKey": "none" },
                        "models": { "model": model },
                    } },
                    "mcp": { "files": { "type": "local", "command": [server, mcp::ARGUMENT], "enabled": true } },
                });
                self.write(".config/opencode/opencode.json", &settings.to_string())
            }
            Agent::Cursor => anyhow::bail!("Cursor's agent is not on npm"),
        }
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let file = self.home.join(name);
        std::fs::create_dir_all(file.parent().context("a directory")?)?;
        Ok(std::fs::write(file, text)?)
    }

    /// A program with the agent's environment, and nothing of the user's.
    pub fn environment(&self, program: &Path) -> anyhow::Result<Command> {
        let mut command = Command::new(program);
        let own = self.programs.join("node_modules/.bin");
        let mut path = OsString::from(own);
        path.push(":");
        path.push(std::env::var_os("PATH").context("PATH")?);
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home)
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .current_dir(self.project);
        Ok(command)
    }

    /// The agent with a prompt, so that it ends by itself.
    pub fn command(&self, tool: Tool) -> anyhow::Result<Command> {
        let program = self
            .programs
            .join("node_modules/.bin")
            .join(self.agent.as_str());
        anyhow::ensure!(
            program.exists(),
            "{} is not installed; `make agents` does that",
            program.display()
        );
        let mut command = self.environment(&program)?;
        let prompt = "Do it.";
        match self.agent {
            Agent::Claude => command
                .env("ANTHROPIC_BASE_URL", self.model)
                .env("ANTHROPIC_API_KEY", "none")
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .env("ENABLE_TOOL_SEARCH", "false")
                .args(["-p", prompt, "--model", "claude-sonnet-4-5", "--mcp-config"])
                .arg(self.home.join("mcp.json"))
                // The option that skips all questions is refused to root.
                .args(["--allowedTools", "Bash Read Edit mcp__files__write"]),
            Agent::Codex => command
                .env("LOOPBACK_KEY", "none")
                .args(["exec", "--skip-git-repo-check", "--model"])
                // Only models that it knows are offered its patch tool, and these find MCP tools by
                // a search.
                .arg(if tool == Tool::Edit {
                    "gpt-5.5"
                } else {
                    "gpt-5"
                })
                .arg(prompt),
            Agent::Copilot => command
                .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", self.model))
                .env("COPILOT_PROVIDER_TYPE", "openai")
                .env("COPILOT_PROVIDER_API_KEY", "none")
                .env("COPILOT_MODEL", "model")
                .env("COPILOT_OFFLINE", "true")
                .args(["-p", prompt, "--allow-all-tools"]),
            Agent::Gemini => command
                .env("GOOGLE_GEMINI_BASE_URL", self.model)
                .env("GEMINI_API_KEY", "none")
                .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
                // With a model of its own choice it asks another one first.
                .args(["--model", "gemini-2.5-flash", "--yolo", "-p", prompt]),
            Agent::Opencode => command
                .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
                .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
                .args(["run", "--auto", prompt]),
            Agent::Cursor => anyhow::bail!("Cursor's agent is not on npm"),
        };
        Ok(command)
    }

    /// The model's calls.
    pub fn calls(&self, tool: Tool) -> Vec<Call> {
        let file = tool.file(self.project);
        let shell = |name: &str, member: &str| {
            Call::new(
                name,
                json!({ member: "touch ran.txt", "description": "Creates a file" }),
            )
        };
        let edit = |name: &str, path: &str, old: &str, new: &str| {
            Call::new(
                name,
                json!({ path: file, old: "two", new: "three", "instruction": "Change it." }),
            )
        };
        let read = |name: &str, path: &str| Call::new(name, json!({ path: file }));
        let write = |name: &str| Call::new(name, json!({ "path": file, "text": "hello" }));
        match (self.agent, tool) {
            (Agent::Claude, Tool::Shell) => vec![shell("Bash", "command")],
            (Agent::Claude, Tool::Edit) => {
                let input =
                    json!({ "file_path": file, "old_string": "two", "new_string": "three" });
                vec![read("Read", "file_path"), Call::new("Edit", input)]
            }
            (Agent::Claude, Tool::Mcp) => vec![write("mcp__files__write")],
            (Agent::Codex, Tool::Shell) => {
                vec![Call::new("exec_command", json!({ "cmd": "touch ran.txt" }))]
            }
            (Agent::Codex, Tool::Edit) => {
                let patch = "*** Begin Patch\n*** Update File: file.txt\n@@\n one\n-two\n+three\n*** End Patch\n";
                vec![Call::new("apply_patch", patch.into())]
            }
            (Agent::Codex, Tool::Mcp) => vec![write("mcp__files/write")],
            (Agent::Copilot | Agent::Opencode, Tool::Shell) => vec![shell("bash", "command")],
            (Agent::Copilot, Tool::Edit) => {
                let input = json!({ "path": file, "old_str": "two", "new_str": "three" });
                vec![Call::new("edit", input)]
            }
            (Agent::Copilot, Tool::Mcp) => vec![write("files-write")],
            (Agent::Gemini, Tool::Shell) => vec![shell("run_shell_command", "command")],
            (Agent::Gemini, Tool::Edit) => {
                vec![edit("replace", "file_path", "old_string", "new_string")]
            }
            (Agent::Gemini, Tool::Mcp) => vec![write("mcp_files_write")],
            (Agent::Opencode, Tool::Edit) => {
                let input = json!({ "filePath": file, "oldString": "two", "newString": "three" });
                vec![read("read", "filePath"), Call::new("edit", input)]
            }
            (Agent::Opencode, Tool::Mcp) => vec![write("files_write")],
            (Agent::Cursor, _) => Vec::new(),
        }
    }
}
