//! The command that an agent runs as its hook, and how it is recognized later.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use countersign::agent::Agent;
use serde_json::Value;

use crate::commands::guard::GuardAddress;

/// The hook's own deadline.
pub const HOOK_TIMEOUT: &str = "9m";
/// When a hook that hangs is killed: after its own deadline, and before the agent gives up.
const KILL_SECONDS: u64 = 570;
/// How long agents are told to wait for a decision. Some run the call afterwards, even if the hook has denied it: an agent that was
/// suspended looks at its clock first. So it is far longer than a suspension, and the hook and its guard have limits of their own.
pub const AGENT_SECONDS: u64 = 86_400;
/// For events that nobody waits for.
pub const SESSION_SECONDS: u64 = 10;
/// Codex shortens it to this, and its trust is in the shortened form.
pub const CODEX_SESSION_END_SECONDS: u64 = 3;

/// What goes into the command.
pub struct HookInvocation {
    pub agent: Agent,
    /// The absolute path of this program.
    pub program: PathBuf,
    pub profile: Option<String>,
    pub guard: Option<GuardAddress>,
    pub every_call: bool,
    pub limiter: Option<TimeoutCommand>,
}

/// `timeout` of this system, which not every system has. By its absolute path: a project may have something else of this name
/// in `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeoutCommand(String);

impl TimeoutCommand {
    /// The first form that works. With `--foreground` the hook still gets Ctrl-C; some systems do not know it.
    pub fn find() -> Option<Self> {
        let works = |form: &String| {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(format!("{form} 5 true"));
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let places = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"];
        let forms = places.iter().flat_map(|place| {
            [" --foreground", ""].map(|option| format!("{place}/timeout{option} -k 1"))
        });
        forms.into_iter().find(works).map(Self)
    }
}

impl HookInvocation {
    fn arguments(&self) -> String {
        let mut text = format!("hook {}", self.agent);
        if let Some(profile) = &self.profile {
            text = format!("{text} --profile {}", quoted(profile));
        }
        if let Some(guard) = &self.guard {
            text = format!("{text} --guard {}", quoted(&guard.to_string()));
        }
        text
    }

    /// For a call: whatever goes wrong with the hook, the end is a denial. It goes through `sh`, since an agent may use any
    /// shell of the user's.
    pub fn guarded(&self) -> String {
        let limit = self
            .limiter
            .as_ref()
            .map(|limiter| format!("{} {KILL_SECONDS} ", limiter.0));
        let every_call = if self.every_call { " --every-call" } else { "" };
        format!(
            "/bin/sh -c '{}\"$@\" || {{ [ $? -eq 2 ] || echo \"countersign: the hook failed, so this call is denied\" >&2; exit 2; }}' \
             countersign {} {} --timeout {HOOK_TIMEOUT}{every_call}",
            limit.unwrap_or_default(),
            quoted(&self.program.to_string_lossy()),
            self.arguments(),
        )
    }

    /// For an event that must not hold up anything.
    pub fn plain(&self) -> String {
        format!(
            "{} {}",
            quoted(&self.program.to_string_lossy()),
            self.arguments()
        )
    }

    /// The words after the program, where there is no shell.
    pub fn words(&self, call: bool) -> Vec<String> {
        let mut words = vec!["hook".to_owned(), self.agent.to_string()];
        if let Some(profile) = &self.profile {
            words.extend(["--profile".to_owned(), profile.clone()]);
        }
        if let Some(guard) = &self.guard {
            words.extend(["--guard".to_owned(), guard.to_string()]);
        }
        if call {
            words.extend(["--timeout".to_owned(), HOOK_TIMEOUT.to_owned()]);
            words.extend(self.every_call.then(|| "--every-call".to_owned()));
        }
        words
    }
}

/// One word for every shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Whether a hook in an agent's configuration is ours: of this version or another, with whatever path.
pub fn is_ours(agent: Agent, hook: &Value) -> bool {
    command_of(hook).is_some_and(|command| program_of(agent, &command).is_some())
}

/// The command of a hook as one text.
pub fn command_of(hook: &Value) -> Option<String> {
    let command = hook["command"].as_str().or_else(|| hook["bash"].as_str())?;
    let Some(words) = hook["args"].as_array() else {
        return Some(command.to_owned());
    };
    let words = words.iter().filter_map(Value::as_str);
    let words = words.map(|word| format!(" {}", quoted(word)));
    Some(format!("{}{}", quoted(command), words.collect::<String>()))
}

/// The program in a command that calls our hook for this agent.
pub fn program_of(agent: Agent, command: &str) -> Option<PathBuf> {
    let words = words(command);
    let found = words.windows(3).find(|words| {
        let name = Path::new(&words[0]).file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("countersign")
            && words[1] == "hook"
            && words[2] == agent.as_str()
    });
    found.map(|words| PathBuf::from(&words[0]))
}

/// The guard that a command asks through.
pub fn guard_of(command: &str) -> Option<String> {
    let words = words(command);
    let at = words.iter().position(|word| word == "--guard")?;
    words.get(at + 1).cloned()
}

/// Splits a command at spaces, and takes quotes away. Enough for what we write ourselves; of other commands it says only that
/// they are not ours.
pub fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}
