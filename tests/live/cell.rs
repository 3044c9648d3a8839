//! One agent on its stage: a gateway, a model, a home with our hook installed; and one call after
//! another.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use countersign::agent::Agent;
use countersign::client::approver::{ApproverChoice, InboxRequest};
use countersign::client::profile::{Profile, ProfileError, ProfileFile};
use countersign::e2e::{ArtifactHints, DecisionScope};
use countersign::protocol::decision::Verdict;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::agents::{BEFORE, Setting, Tool};
use super::cases::{Case, REASON, holes};
use super::gateway::Gateway;
use super::hook::{Conditions, Hook};
use super::model::Model;
use super::relay;
use super::report::Seen;

/// An agent that has not ended by then is killed.
const PATIENCE: Duration = Duration::from_secs(150);
/// How often the approver looks.
const PAUSE: Duration = Duration::from_millis(250);
/// Longer than the hook's deadline, and much shorter than the limit that `install` gives the agent.
const SUSPENSION: Duration = Duration::from_secs(20);

pub struct CellScene {
    agent: Agent,
    programs: PathBuf,
    gateway: Gateway,
    model: Model,
    hook: Hook,
    altering: String,
    claiming: String,
    /// Requests of earlier calls that nobody has decided.
    known: Mutex<HashSet<String>>,
    directory: TempDir,
}

impl CellScene {
    pub async fn prepare(agent: Agent, programs: &Path, keep: bool) -> anyhow::Result<Self> {
        // Not within a repository, which would be the project then.
        let mut directory = tempfile::Builder::new()
            .prefix(&format!("agents-{agent}-"))
            .tempdir()?;
        directory.disable_cleanup(keep);
        if keep {
            println!("{agent}: {}", directory.path().display());
        }
        let gateway = Gateway::start(directory.path()).await?;
        let altering = relay::altering(&gateway.url).await?;
        let stage = Self {
            agent,
            programs: programs
                .canonicalize()
                .context("npm has installed nothing; use `make agents`")?,
            gateway,
            model: Model::start().await?,
            hook: Hook::place(&directory.path().join("bin"))?,
            altering,
            claiming: relay::claiming().await?,
            known: Mutex::default(),
            directory,
        };
        std::fs::create_dir_all(stage.home())?;
        std::fs::create_dir_all(stage.project())?;
        stage.give_profile(&stage.gateway.url)?;
        stage.setting(&stage.home(), &stage.project()).configure()?;
        stage.install().await?;
        stage.check_with_doctor().await?;
        Ok(stage)
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn setting<'a>(&'a self, home: &'a Path, project: &'a Path) -> Setting<'a> {
        Setting {
            agent: self.agent,
            programs: &self.programs,
            home,
            project,
            model: &self.model.url,
        }
    }

    fn profile(&self) -> PathBuf {
        self.home().join(".config/countersign/default.toml")
    }

    /// The enforcer's profile, which finds the gateway there.
    fn give_profile(&self, url: &str) -> anyhow::Result<()> {
        let file = self.profile();
        std::fs::create_dir_all(file.parent().context("a directory")?)?;
        // The permissions are copied too.
        std::fs::copy(&self.gateway.profile, &file)?;
        ProfileFile::at(file).update(|profile: &mut Profile| {
            if let Some(enforcer) = &mut profile.enforcer {
                enforcer.gateway.urls = vec![url.to_owned()];
            }
            Ok::<_, ProfileError>(())
        })?;
        Ok(())
    }

    /// As a user does it.
    async fn install(&self) -> anyhow::Result<()> {
        let (home, project) = (self.home(), self.project());
        let setting = self.setting(&home, &project);
        let done = setting
            .environment(&self.hook.program())?
            .args(["install", self.agent.as_str(), "--user", "--yes"])
            .stdin(Stdio::null())
            .output()
            .await?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        anyhow::ensure!(done.status.success(), "install {}: {said}", self.agent);
        Ok(())
    }

    /// `doctor` must find everything in order, and name the holes that are known here.
    async fn check_with_doctor(&self) -> anyhow::Result<()> {
        let (home, project) = (self.home(), self.project());
        let done = self
            .setting(&home, &project)
            .environment(&self.hook.program())?
            .args(["doctor", self.agent.as_str(), "--json"])
            .stdin(Stdio::null())
            .output()
            .await?;
        let said = String::from_utf8_lossy(&done.stdout);
        anyhow::ensure!(done.status.success(), "doctor {}: {said}", self.agent);
        for hole in holes(self.agent) {
            anyhow::ensure!(
                said.contains(hole),
                "doctor {} does not name it: {hole}",
                self.agent
            );
        }
        Ok(())
    }

    /// Lets the agent make one call.
    pub async fn play(&self, case: Case, tool: Tool) -> anyhow::Result<Seen> {
        let begun = Instant::now();
        let (home, project) = (self.home(), self.project());
        std::fs::remove_dir_all(&project)?;
        std::fs::create_dir_all(&project)?;
        std::fs::write(project.join("file.txt"), BEFORE)?;
        self.hook.arrange(Conditions {
            seconds: case.deadline(),
            disk_full: case == Case::DiskFull,
        })?;
        let nowhere = "http://127.0.0.1:1";
        self.give_profile(match case {
            Case::GatewayDown => nowhere,
            Case::Altered => &self.altering,
            Case::Claimed => &self.claiming,
            _ => &self.gateway.url,
        })?;
        if case == Case::ProfileMissing {
            std::fs::remove_file(self.profile())?;
        }
        let setting = self.setting(&home, &project);
        self.model.play(setting.calls(tool));
        let log = self
            .directory
            .path()
            .join(format!("{}-{}.log", case.as_str(), tool.as_str()));
        let log = std::fs::File::create(log)?;
        let mut agent = setting
            .command(tool)?
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        let group = agent.id().and_then(|id| i32::try_from(id).ok());
        let group = group.map(Pid::from_raw);
        let mut asked = 0;
        let ended = tokio::select! {
            ended = timeout(PATIENCE, agent.wait()) => ended,
            failed = self.attend(case, tool, group, &mut asked) => return Err(failed),
        };
        // Processes that it has left behind.
        if let Some(group) = group {
            let _gone = killpg(group, Signal::SIGKILL);
        }
        let told = self.model.told();
        let happened = tool.happened(&project);
        let calls = setting.calls(tool).len();
        let wrong = if ended.is_err() {
            Some("the agent did not end".to_owned())
        } else if told.len() != calls {
            Some(format!(
                "the model was told of {} calls, not {calls}",
                told.len()
            ))
        } else if case.reaches_approver() && asked != 1 {
            Some(format!("the approver saw {asked} requests"))
        } else if let Some(words) = case.told()
            && !told.iter().any(|told| told.contains(words))
        {
            Some(format!("the model was not told {words:?}"))
        } else {
            None
        };
        Ok(Seen {
            happened,
            wrong,
            told: told.last().cloned().unwrap_or_default(),
            seconds: begun.elapsed().as_secs(),
        })
    }

    /// Does what the case wants with each request, until it is dropped.
    async fn attend(
        &self,
        case: Case,
        tool: Tool,
        group: Option<Pid>,
        asked: &mut usize,
    ) -> anyhow::Error {
        loop {
            match self.gateway.approver.find("").await {
                Ok(items) => {
                    for item in items {
                        if self.is_new(&item) {
                            *asked += 1;
                            if let Err(error) = self.react(case, tool, group, &item).await {
                                return error;
                            }
                        }
                    }
                }
                Err(error) => return error.into(),
            }
            sleep(PAUSE).await;
        }
    }

    fn is_new(&self, item: &InboxRequest) -> bool {
        let mut known = match self.known.lock() {
            Ok(known) => known,
            Err(poisoned) => poisoned.into_inner(),
        };
        known.insert(item.request_id.to_string())
    }

    async fn react(
        &self,
        case: Case,
        tool: Tool,
        group: Option<Pid>,
        item: &InboxRequest,
    ) -> anyhow::Result<()> {
        match case {
            Case::Suspended => {
                let group = group.context("the agent has ended")?;
                killpg(group, Signal::SIGSTOP)?;
                sleep(SUSPENSION).await;
                Ok(killpg(group, Signal::SIGCONT)?)
            }
            Case::Approved | Case::Altered => self.decide(item, Verdict::Approve).await,
            Case::Rejected | Case::DiskFull => self.decide(item, Verdict::Reject).await,
            Case::FileChanged => {
                std::fs::write(tool.file(&self.project()), format!("zero\n{BEFORE}"))?;
                self.decide(item, Verdict::Approve).await
            }
            Case::HookKilled | Case::AllKilled => {
                let killed = self.hook.kill(case == Case::AllKilled)?;
                anyhow::ensure!(killed > 0, "there is no hook to kill");
                Ok(())
            }
            Case::Undecided | Case::GatewayDown | Case::ProfileMissing | Case::Claimed => Ok(()),
        }
    }

    async fn decide(&self, item: &InboxRequest, verdict: Verdict) -> anyhow::Result<()> {
        let choice = ApproverChoice {
            verdict,
            scope: DecisionScope::Once,
            lasts: None,
            hints: ArtifactHints {
                reason: (verdict == Verdict::Reject).then(|| REASON.to_owned()),
                ..ArtifactHints::default()
            },
        };
        self.gateway.approver.decide(item, &choice).await?;
        Ok(())
    }
}
