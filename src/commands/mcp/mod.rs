//! `mcp`: a server of the Model Context Protocol on standard input and output, for agents that ask by themselves.

mod answers;
mod arguments;
mod requests;
mod server;
mod tools;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use countersign::config::{Log, LogFormat};
use countersign::telemetry;
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServiceExt as _};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::requests::OpenRequests;
use self::server::McpServer;
use super::client::ClientOptions;
use super::ending::{ExitAction, FAILURE};
use super::enforcer::signals;
use super::guard::GuardAddress;
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

An agent that does not ask is not stopped by this: hooks are what enforces."#;

/// A longer message is dropped. The content of a request has at most 4 MiB, and takes more when it is escaped.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Everything that waits is withdrawn within this time, or left to expire: agents kill servers that take long to end.
const END_TIMEOUT: Duration = Duration::from_secs(6);

#[derive(Args)]
pub struct McpArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// Ask through this guard: the user that it runs as, and its socket.
    #[arg(long, env = "COUNTERSIGN_GUARD", value_name = "USER:SOCKET")]
    guard: Option<GuardAddress>,
}

/// Ends with its input, or by a signal.
pub async fn run(args: McpArgs) -> anyhow::Result<ExitAction> {
    let mut screen = TerminalScreen::new(true);
    // What the SDK reports as an error, such as a message that is too long. It logs no content there.
    telemetry::start(&Log {
        filter: "error".to_owned(),
        format: LogFormat::Pretty,
    });
    if std::io::stdin().is_terminal() {
        screen.say("countersign: this speaks MCP with an agent; see: countersign mcp --help");
    }
    let stop = CancellationToken::new();
    let is_guarded = args.guard.is_some();
    let requests = OpenRequests::new(args.options, args.guard, stop.clone());
    if !is_guarded && let Err(problem) = requests.enforcer() {
        screen.say(&format!(
            "countersign: every request is denied: {problem:#}"
        ));
    }
    let signals = signals()?;
    let stdio = AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout());
    let input = ClosingInput {
        stdio: stdio.with_max_line_length(MAX_MESSAGE_BYTES),
        ended: stop.clone(),
    };
    let ending = tokio::select! {
        ending = serve(Arc::clone(&requests), input, &mut screen) => ending,
        code = signals => {
            let _left_to_expire = timeout(END_TIMEOUT, requests.end()).await;
            ExitAction::code(code)
        }
    };
    Ok(ending)
}

async fn serve(
    requests: Arc<OpenRequests>,
    input: ClosingInput<impl Transport<RoleServer> + 'static>,
    screen: &mut TerminalScreen,
) -> ExitAction {
    let ended = input.ended.clone();
    let serving = match McpServer::new(Arc::clone(&requests)).serve(input).await {
        Ok(serving) => serving,
        Err(ServerInitializeError::ConnectionClosed(_)) => return ExitAction::DONE,
        // Without the error's own text, which may have the whole message.
        Err(_) => {
            screen.say("countersign: the first message was no request to initialize");
            return ExitAction::code(FAILURE);
        }
    };
    // The answers go out while requests are withdrawn, if anybody still reads them.
    let ending = async {
        let quitting = async {
            let _quit = serving.waiting().await;
            ended.cancel();
        };
        let withdrawing = async {
            ended.cancelled().await;
            requests.end().await;
        };
        tokio::join!(quitting, withdrawing)
    };
    let overdue = async {
        ended.cancelled().await;
        sleep(END_TIMEOUT).await;
    };
    tokio::select! {
        _ = ending => {}
        () = overdue => {}
    }
    ExitAction::DONE
}

/// Tells of the end of the input at once: the SDK would first wait for calls that wait for people.
struct ClosingInput<T> {
    stdio: T,
    ended: CancellationToken,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for ClosingInput<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.stdio.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.stdio.receive().await;
        if message.is_none() {
            self.ended.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.stdio.close().await
    }
}
