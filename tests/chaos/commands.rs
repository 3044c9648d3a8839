//! The real commands among the clients: `run` and `hook` of one agent's machine, and the person who
//! answers them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use countersign::client::ClientError;
use countersign::client::approver::{Approver, ApproverChoice, EnrolmentProgress, InboxRequest};
use countersign::client::enforcer::Enforcer;
use countersign::client::profile::{
    ApproverProfile, EnforcerProfile, GatewayProfile, Profile, ProfileError, ProfileFile,
    SecretText,
};
use countersign::client::random;
use countersign::clock::Clock;
use countersign::e2e::{
    ArtifactHints, DecisionScope, DeviceKeys, DeviceName, EnforcerKeys, PairingLink, ReceivedAnswer,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, EnforcerId, TextId as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::calls::Clients;
use super::nodes::clean;
use super::programs::dying_with_us;
use super::trials::CommandKind;

pub const ENFORCER: &str = "bot";
pub const APPROVER: &str = "person";
/// How often a command is started.
const EVERY: Duration = Duration::from_millis(1_500);
/// Longer than any fault and the time to get over it.
pub const TIMEOUT: Duration = Duration::from_secs(90);
/// How often the person looks into the inbox.
const LOOKS: Duration = Duration::from_millis(300);
/// The first part of the name of what a command would do.
const MARK: &str = "trial-";

pub struct CommandClients {
    clients: Arc<Clients>,
    directory: PathBuf,
}

impl CommandClients {
    /// Writes the profiles of both, pairs them, and starts to answer.
    pub async fn start(clients: &Arc<Clients>, directory: &Path) -> anyhow::Result<Arc<Self>> {
        let directory = directory.join("agent");
        std::fs::create_dir_all(directory.join("effects"))?;
        std::fs::create_dir_all(directory.join("project/.git"))?;
        let gateway = |key: &str| GatewayProfile {
            urls: clients.entrances.clone(),
            ca: None,
            allow_http: false,
            tenant: clients.keys.tenant.clone(),
            api_key: SecretText::new(key.to_owned()),
        };
        let file = |name: &str| {
            ProfileFile::at(directory.join("countersign").join(format!("{name}.toml")))
        };
        let (enforcer, approver) = (file(ENFORCER), file(APPROVER));
        let keys = EnforcerKeys::generate(&mut random)?;
        let id = EnforcerId::parse(ENFORCER).context("an id")?;
        let profile = EnforcerProfile::new(&id, &keys, gateway(&clients.keys.bot));
        enforcer.update(|whole: &mut Profile| {
            whole.enforcer = Some(profile);
            Ok::<_, ProfileError>(())
        })?;
        let keys = DeviceKeys::generate(&mut random)?;
        let id = ApproverId::parse(APPROVER).context("an id")?;
        let name = DeviceName::parse("laptop").context("a name")?;
        let profile = ApproverProfile::new(&id, &keys, &name, gateway(&clients.keys.person));
        approver.update(|whole: &mut Profile| {
            whole.approver = Some(profile);
            Ok::<_, ProfileError>(())
        })?;
        let clock = Clock::system();
        let mut enforcer = Enforcer::open(&enforcer, &clock)?;
        let mut approver = Approver::open(&approver, &clock)?;
        let in_force = matches!(approver.enrol().await?, EnrolmentProgress::InForce);
        anyhow::ensure!(in_force, "the person's first device is not in force");
        pair(&mut enforcer, &mut approver).await?;
        let person = CommandApprover {
            approver,
            clients: Arc::clone(clients),
            verdicts: HashMap::new(),
        };
        tokio::spawn(person.answer());
        Ok(Arc::new(Self {
            clients: Arc::clone(clients),
            directory,
        }))
    }

    /// Starts commands until nobody may begin anything any more.
    pub async fn work(self: Arc<Self>, stop: tokio_util::sync::CancellationToken) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            let tool = if self.clients.random.percent(50) {
                CommandKind::Run
            } else {
                CommandKind::Hook
            };
            let number = self.clients.book.begin_trial(tool);
            let commands = Arc::clone(&self);
            self.clients.tasks.spawn(async move {
                let tried = match tool {
                    CommandKind::Run => commands.run(number).await,
                    CommandKind::Hook => commands.hook(number).await,
                };
                match tried {
                    Ok((succeeded, effects)) => {
                        let book = &commands.clients.book;
                        book.end_trial(number, succeeded, effects);
                    }
                    Err(error) => {
                        let what = format!("{tool:?} {number}: {error}");
                        commands.clients.book.odd(what);
                    }
                }
            });
        }
    }

    fn command(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut command = dying_with_us("KILL");
        clean(&mut command)
            .arg(env!("CARGO_BIN_EXE_countersign"))
            .args(arguments)
            .args(["--timeout", &format!("{}s", TIMEOUT.as_secs())])
            .env("HOME", &self.directory)
            .env("XDG_CONFIG_HOME", &self.directory)
            .env("COUNTERSIGN_PROFILE", ENFORCER)
            .current_dir(self.directory.join("project"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Whether `run` succeeded, and how often its program ran.
    async fn run(&self, number: usize) -> anyhow::Result<(bool, usize)> {
        let file = self.directory.join(format!("effects/{MARK}{number}"));
        let script = format!("echo ran >> {}", file.display());
        let done = self
            .command(&["run"])
            .args(["--", "sh", "-c", &script])
            .output()
            .await?;
        let effects = std::fs::read_to_string(&file).unwrap_or_default();
        Ok((done.status.success(), effects.lines().count()))
    }

    /// Whether `hook` allowed the call, which is its only effect.
    async fn hook(&self, number: usize) -> anyhow::Result<(bool, usize)> {
        let input = json!({
            "session_id": "chaos", "cwd": self.directory.join("project"), "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": { "command": format!("touch {MARK}{number}") },
        });
        let mut child = self
            .command(&["hook", "claude"])
            .stdin(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("its input")?;
        stdin.write_all(input.to_string().as_bytes()).await?;
        drop(stdin);
        let done = child.wait_with_output().await?;
        let answer: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
        let allowed = answer["hookSpecificOutput"]["permissionDecision"] == "allow";
        Ok((allowed, usize::from(allowed)))
    }
}

async fn pair(enforcer: &mut Enforcer, approver: &mut Approver) -> anyhow::Result<()> {
    let attempt = enforcer.begin_pairing(Some("agent"), None).await?;
    let link = PairingLink::parse(&attempt.link("https://page.example.org"))?;
    approver.pair_by_link(&link).await?;
    let completed = enforcer.wait_for_answer(attempt).await?;
    let (received, pairing) = completed.context("nobody answered")?.split();
    let ReceivedAnswer::Proven(device) = received else {
        anyhow::bail!("the link proved nothing");
    };
    enforcer.pin(&device, pairing)?;
    Ok(())
}

/// Answers each request once it sees it: yes or no, and the same however often it has to say so.
struct CommandApprover {
    approver: Approver,
    clients: Arc<Clients>,
    verdicts: HashMap<usize, Verdict>,
}

impl CommandApprover {
    async fn answer(mut self) {
        let over = self.clients.over.clone();
        while !over.is_cancelled() {
            let mut items = Vec::new();
            // The gateway may be away; the next look is soon.
            drop(self.approver.inbox(|item| items.push(item)).await);
            for item in items {
                self.decide(&item).await;
            }
            sleep(LOOKS).await;
        }
    }

    async fn decide(&mut self, item: &InboxRequest) {
        let book = &self.clients.book;
        let Some(number) = trial(item) else {
            let what = format!("{}: cannot be opened by the person asked", item.request_id);
            return book.odd(what);
        };
        let approve = self.clients.random.percent(60);
        let chosen = if approve {
            Verdict::Approve
        } else {
            Verdict::Reject
        };
        let verdict = *self.verdicts.entry(number).or_insert(chosen);
        book.sign_trial(number, verdict == Verdict::Approve);
        let choice = ApproverChoice {
            verdict,
            scope: DecisionScope::Once,
            lasts: None,
            hints: ArtifactHints::default(),
        };
        match self.approver.decide(item, &choice).await {
            // An attempt whose answer was lost has decided it.
            Ok(_) | Err(ClientError::AlreadyDecided) => book.accept_trial(number),
            // Its command gave up, or the next look tries again.
            Err(_) => {}
        }
    }
}

/// The number in what a request would do.
fn trial(item: &InboxRequest) -> Option<usize> {
    let text = item.content.as_ref().ok()?.artifact().text();
    let (_, rest) = text.split_once(MARK)?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}
