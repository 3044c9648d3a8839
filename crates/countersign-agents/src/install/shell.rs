//! The command that an agent runs as its hook, and how it is recognized later.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// The hook's own deadline.
pub const HOOK_TIMEOUT: &str = "9m";
/// When a hook that hangs is killed: after its own deadline, and before the agent gives up.
const KILL_SECONDS: u64 = 570;
/// Agents are told to wait for a decision for this time. Some run the call afterwards, even if the
/// hook has denied it: an agent that was suspended looks at its clock first. So it is far longer
/// than a suspension. The hook and its guard have limits of their own.
pub const AGENT_SECONDS: u64 = 86_400;
/// For events that nobody waits for.
pub const SESSION_SECONDS: u64 = 10;

/// The parts of the command.
pub struct HookInvocation {
    /// As it is called on the command line.
    pub agent: &'static str,
    /// The absolute path of this program.
    pub program: PathBuf,
    pub profile: Option<String>,
    /// The user and the socket of the guard.
    pub guard: Option<String>,
    pub every_call: bool,
    pub limiter: Option<TimeoutCommand>,
}

/// `timeout` of this system, which not every system has. By its absolute path: a project may have
/// something else of this name in `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeoutCommand(String);

impl TimeoutCommand {
    /// The first form that works. With `--foreground` the hook still gets Ctrl-C; some systems do
    /// not know it.
    pub fn find() -> Option<Self> {
        let works = |form: &String| {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(format!("{form} 5 true"));
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let status = command.stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        let places = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"];
        let forms = places.iter().flat_map(|place| {
            [" --foreground", ""].map(|option| format!("{place}/timeout{option} -k 1"))
        });
        forms.into_iter().find(works).map(Self)
    }
}

impl HookInvocation {
    /// The words after the program, for a call or for an event that is only reported.
    pub fn words(&self, is_call: bool) -> Vec<String> {
        self.words_with(is_call, str::to_owned)
    }

    fn words_with(&self, is_call: bool, value: fn(&str) -> String) -> Vec<String> {
        let mut words = vec!["hook".to_owned(), self.agent.to_owned()];
        let options = [("--profile", &self.profile), ("--guard", &self.guard)];
        for (option, given) in options {
            words.extend(given.iter().flat_map(|it| [option.to_owned(), value(it)]));
        }
        if is_call {
            words.extend(["--timeout", HOOK_TIMEOUT].map(str::to_owned));
            words.extend(self.every_call.then(|| "--every-call".to_owned()));
        }
        words
    }

    /// The command for a shell.
    fn command(&self, is_call: bool) -> String {
        let program = quoted(&self.program.to_string_lossy());
        format!("{program} {}", self.words_with(is_call, quoted).join(" "))
    }

    /// For a call: every failure of the hook ends as a denial. It goes through `sh`, since an agent
    /// may use any shell of the user's.
    pub fn guarded(&self) -> String {
        let limit = (self.limiter.as_ref()).map(|limiter| format!("{} {KILL_SECONDS} ", limiter.0));
        format!(
            "/bin/sh -c '{}\"$@\" || {{ [ $? -eq 2 ] || echo \"countersign: the hook failed, so this call is denied\" >&2; exit 2; }}' \
             countersign {}",
            limit.unwrap_or_default(),
            self.command(true),
        )
    }

    /// For an event that must not hold up anything.
    pub fn plain(&self) -> String {
        self.command(false)
    }
}

/// One word for every shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Whether a hook in an agent's settings is ours: of any version, with any path.
pub fn is_ours(agent: &str, hook: &Value) -> bool {
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
pub fn program_of(agent: &str, command: &str) -> Option<PathBuf> {
    let words = words(command);
    let found = words.windows(3).find(|words| {
        let name = Path::new(&words[0]).file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("countersign") && words[1] == "hook" && words[2] == agent
    });
    found.map(|words| PathBuf::from(&words[0]))
}

/// The guard that a command asks through.
pub fn guard_of(command: &str) -> Option<String> {
    option_of(command, "--guard")
}

/// The hook's own deadline in a command; zero if it cannot be read.
pub fn timeout_of(command: &str) -> Duration {
    let given = option_of(command, "--timeout");
    parse_duration(given.as_deref().unwrap_or(HOOK_TIMEOUT)).unwrap_or_default()
}

fn option_of(command: &str, option: &str) -> Option<String> {
    let words = words(command);
    let at = words.iter().position(|word| word == option)?;
    words.get(at + 1).cloned()
}

/// A time as options of the command line have it: `90s`, `9m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected =
        || "expected a number with s, m, h or d, such as 90s or 10m, and at most 366d".to_owned();
    let unit = text.chars().last().ok_or_else(expected)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(expected()),
    };
    let number: u64 = (text[..text.len() - 1].parse()).map_err(|_| expected())?;
    let seconds = number.checked_mul(seconds).filter(|seconds| *seconds > 0);
    let seconds = seconds.filter(|seconds| *seconds <= 366 * 86_400);
    seconds.map(Duration::from_secs).ok_or_else(expected)
}

/// Splits a command at spaces, and takes quotes away. That is enough for commands that we write
/// ourselves, and to tell that others are not ours.
fn words(command: &str) -> Vec<String> {
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
