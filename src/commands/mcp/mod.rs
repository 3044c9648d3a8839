//! `mcp`: a server of the Model Context Protocol on standard input and output, for agents that ask
//! by themselves.

mod answers;
mod arguments;
mod call;
mod requests;
mod rpc;
mod server;
mod tools;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing_subscriber::filter::LevelFilter;

use self::requests::OpenRequests;
use self::server::McpServer;
use super::client_options::ClientOptions;
use super::exit_action::ExitAction;
use super::guard::GuardAddress;
use super::signals::signals;
use super::terminal::TerminalScreen;

pub const EXAMPLES: &str = r#"Examples:
  claude mcp add --scope user countersign -- countersign mcp
  codex mcp add countersign -- countersign mcp
      and in ~/.codex/config.toml, under [mcp_servers.countersign]: tool_timeout_sec = 660
  gemini mcp add --scope user --timeout 660000 countersign countersign mcp
  copilot mcp add --timeout 660000 countersign -- countersign mcp
  opencode, in opencode.json:
      {"mcp": {"countersign": {"type": "local", "command": ["countersign", "mcp"], "timeout": 660000}}}
  Cursor, in ~/.cursor/mcp.json:
      {"mcpServers": {"countersign": {"command": "countersign", "args": ["mcp"]}}}

This does not stop an agent that does not ask; hooks do."#;

/// Messages that wait for a slow reader.
const MAX_UNWRITTEN: usize = 64;
/// Everything that waits is withdrawn within this time, or left to expire: agents kill servers that
/// take long to end.
const END_TIMEOUT: Duration = Duration::from_secs(6);

#[derive(Args)]
pub struct McpArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// Ask through this guard: its user and its socket.
    #[arg(long, env = "COUNTERSIGN_GUARD", value_name = "USER:SOCKET")]
    guard: Option<GuardAddress>,
}

/// Ends with its input, or by a signal.
pub async fn run(args: McpArgs) -> anyhow::Result<ExitAction> {
    let mut screen = TerminalScreen::new(true);
    // No message has content of requests at this level.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(LevelFilter::ERROR)
        .init();
    if std::io::stdin().is_terminal() {
        screen.say("countersign: this is for agents, which speak MCP; see: countersign mcp --help");
    }
    let is_guarded = args.guard.is_some();
    let requests = OpenRequests::new(args.options, args.guard);
    if !is_guarded && let Err(problem) = requests.enforcer() {
        screen.say(&format!(
            "countersign: every request is denied: {problem:#}"
        ));
    }
    let signals = signals()?;
    let (output, messages) = mpsc::channel(MAX_UNWRITTEN);
    let writing = tokio::spawn(write(messages));
    let mut server = McpServer::new(Arc::clone(&requests), output);
    let exit = tokio::select! {
        served = server.serve(BufReader::new(tokio::io::stdin())) => {
            served.map(|()| ExitAction::DONE)
        }
        code = signals => Ok(ExitAction::code(code)),
    };
    let ending = async {
        requests.end().await;
        server.end().await;
        let _stopped = writing.await;
    };
    let _left_to_expire = timeout(END_TIMEOUT, ending).await;
    exit
}

async fn write(mut messages: mpsc::Receiver<Value>) {
    let mut output = tokio::io::stdout();
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::error!(%error, "standard output cannot be written");
            return;
        }
    }
}
