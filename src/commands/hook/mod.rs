//! `hook`: called by an agent before it acts. Every failure here is a denial: it never ends in a
//! way that an agent takes for permission.

mod ask;
pub mod report;
mod turn;

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use countersign::agent::{
    Agent, BLOCK, EventKind, HookEvent, HookOutput, HookVerdict, MAX_INPUT_BYTES, guarded,
};
use countersign::client::profile::ProfileFile;
use countersign::client::visible_lines;
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::ask::{HookRequest, agent_session};
use self::report::observe;
use self::turn::{AgentWatch, TurnMark};
use super::complete;
use super::exit_action::ExitAction;
use super::guard::{GuardAddress, INTERRUPTED, ObservedEvent};
use super::log::session_problems;
use super::signals::stop_signals;
use super::terminal::parse_duration;

pub const EXAMPLES: &str = "\
Agents run it; `countersign install AGENT` tells them to. To try it by hand:
  echo '{\"hook_event_name\":\"PreToolUse\",\"cwd\":\"/tmp\",\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"date\"}}' | countersign hook claude
  countersign hook gemini --timeout 5m < call.json
  countersign hook codex --profile work < call.json";

/// An agent writes what it has to say at once.
const INPUT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args)]
pub struct HookArgs {
    /// The agent that calls.
    #[arg(value_name = "AGENT", value_parser = agents())]
    agent: Agent,
    /// The profile to use.
    #[arg(
        long,
        env = "COUNTERSIGN_PROFILE",
        default_value = "default",
        value_name = "NAME",
        add = complete::profiles()
    )]
    profile: String,
    /// How long to wait for a decision before denying the call. Must be shorter than the agent's own
    /// time limit for hooks.
    #[arg(long, default_value = "9m", value_parser = parse_duration)]
    timeout: Duration,
    /// Ask about every call, even those that the policy allows.
    #[arg(long)]
    every_call: bool,
    /// Ask through this guard: its user and its socket. The guard has the profile and the policy.
    #[arg(long, value_name = "USER:SOCKET")]
    guard: Option<GuardAddress>,
}

fn agents() -> impl clap::builder::TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(Agent::ALL.map(Agent::as_str)).try_map(|name| name.parse::<Agent>())
}

pub async fn run(args: HookArgs) -> ExitAction {
    let output = guarded(args.agent, Box::pin(gate(&args))).await;
    ExitAction::code(print(&output))
}

async fn gate(args: &HookArgs) -> HookOutput {
    let agent = args.agent;
    let deadline = Instant::now() + args.timeout;
    let stop = match stop_signals() {
        Ok(stop) => stop,
        Err(error) => return HookOutput::denied(agent, None, &error.to_string()),
    };
    let event = tokio::select! {
        input = input() => input.and_then(|text| HookEvent::read(agent, &text).map_err(|error| error.to_string())),
        () = stop.cancelled() => Err(INTERRUPTED.to_owned()),
    };
    let mut event = match event {
        Ok(event) => event,
        Err(problem) => return HookOutput::denied(agent, None, &visible_lines(&problem)),
    };
    if agent.names_call_directory() {
        place(&mut event);
    }
    let output = match ProfileFile::named(&args.profile) {
        Ok(file) => Box::pin(answer(args, event.clone(), file, deadline, &stop)).await,
        Err(error) if event.call().is_some() => {
            HookOutput::denied(agent, Some(&event), &error.to_string())
        }
        Err(_) => HookOutput::of(agent, &event, &HookVerdict::NotAsked, None),
    };
    // A caller that ends this program does not wait for its answer, or wants none that permits
    // anything.
    if stop.is_cancelled() && event.call().is_some() && output.status == 0 {
        return HookOutput::denied(agent, Some(&event), INTERRUPTED);
    }
    output
}

/// The agent works where its hook runs.
fn place(event: &mut HookEvent) {
    let named = event.directory.as_deref().map(std::fs::canonicalize);
    if let Ok(own) = std::env::current_dir()
        && named.is_none_or(|named| named.ok().as_ref() != Some(&own))
    {
        event.set_agent_directory(own.to_string_lossy().into_owned());
    }
}

async fn answer(
    args: &HookArgs,
    event: HookEvent,
    file: ProfileFile,
    deadline: Instant,
    stop: &CancellationToken,
) -> HookOutput {
    let agent = args.agent;
    let mark = TurnMark::of(agent, &event, &file);
    if let EventKind::Call(_) = event.kind {
        tokio::spawn(AgentWatch::begin(mark).cancel_with_agent(stop.clone()));
        let asking = HookRequest {
            agent,
            every_call: args.every_call,
            file,
            guard: args.guard.as_ref(),
            deadline,
            stop,
        };
        return asking.answer(event).await;
    }
    if let (EventKind::TurnEnd, Some(mark)) = (&event.kind, mark)
        && let Err(error) = mark.set()
    {
        // The waiting hooks do not learn it, so a person may approve without effect. The agent
        // continues.
        let problem = format!(
            "countersign: the end of the turn cannot be recorded: {error}; its requests stay in the inbox"
        );
        return HookOutput {
            stderr: problem,
            ..HookOutput::of(agent, &event, &HookVerdict::NotAsked, None)
        };
    }
    let observing = async {
        let session = agent_session(agent, &event)?;
        let observed = match event.kind {
            EventKind::SessionStart => ObservedEvent::Start,
            EventKind::Prompt => ObservedEvent::Prompt,
            EventKind::SessionClear => ObservedEvent::Clear,
            EventKind::SessionEnd => ObservedEvent::End,
            EventKind::TurnEnd => ObservedEvent::TurnEnd,
            EventKind::SessionClose => ObservedEvent::Close,
            EventKind::Call(_) | EventKind::Other => return None,
        };
        match &args.guard {
            Some(guard) => guard.observe(session, observed).await.ok().flatten(),
            None => observe(&session, observed, &file).await,
        }
    };
    // Not through a guard, which has the profile.
    let checks_log = event.kind == EventKind::SessionStart && args.guard.is_none();
    let checking = async {
        if checks_log {
            session_problems(&file).await
        } else {
            None
        }
    };
    let (context, problems) = tokio::select! {
        both = async { tokio::join!(observing, checking) } => both,
        () = stop.cancelled() => (None, None),
    };
    let output = HookOutput::of(agent, &event, &HookVerdict::NotAsked, context.as_deref());
    match problems {
        Some(stderr) => HookOutput { stderr, ..output },
        None => output,
    }
}

async fn input() -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    // One more, so that too much shows.
    let mut input = tokio::io::stdin().take(MAX_INPUT_BYTES as u64 + 1);
    match timeout(INPUT_TIMEOUT, input.read_to_end(&mut text)).await {
        Ok(Ok(_)) => Ok(text),
        Ok(Err(error)) => Err(format!("the agent's input cannot be read: {error}")),
        Err(_) => Err("the agent's input did not end in time".to_owned()),
    }
}

/// Writes everything in one go. An answer that cannot be written must not be taken for permission.
fn print(output: &HookOutput) -> u8 {
    let mut status = output.status;
    let mut remarks = output.stderr.clone();
    if !output.stdout.is_empty() {
        let line = format!("{}\n", output.stdout);
        let mut stdout = io::stdout().lock();
        let written = (stdout.write_all(line.as_bytes())).and_then(|()| stdout.flush());
        if let Err(error) = written {
            status = BLOCK;
            remarks.push_str("\ncountersign: denied: the answer cannot be written: ");
            remarks.push_str(&error.to_string());
        }
    }
    if !remarks.is_empty() {
        // Not with a macro that panics: the exit status must still be given.
        let _lost = writeln!(io::stderr(), "{}", visible_lines(remarks.trim_start()));
    }
    status
}
