//! The cost of the enforcer's commands: `countersign run -- true`, with an approver that answers at
//! once, beside the two calls that it cannot do without; and a hook that needs to ask nobody.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use countersign::client::approver::{
    Approver, ApproverChoice, EnrolmentProgress, InvitationLink, JoinOutcome, join,
};
use countersign::client::enforcer::Enforcer;
use countersign::client::profile::ProfileFile;
use countersign::client::{GatewayCall, GatewayClient, GatewayLocation, PushedEvent};
use countersign::clock::Clock;
use countersign::e2e::{ArtifactHints, DecisionScope, DeviceName, PairingLink, ReceivedAnswer};
use countersign::protocol::decision::Verdict;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::Bench;
use super::load::median;
use super::nodes::Running;
use super::report::Target;

/// The most that the command may take.
const RUN_MS: f64 = 10.0;
/// The most that a hook may take for a call that the policy lets pass.
const HOOK_MS: f64 = 8.0;
/// Runs that do not count.
const WARM_UP: usize = 10;
/// Runs that count. Each also reads the list of devices and the orders of approvers.
const RUNS: usize = 200;

/// Both ends, with profiles of their own.
struct Ends {
    config: TempDir,
    approver: Approver,
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

async fn joined(
    nodes: &Running,
    config: &TempDir,
    urls: &[String],
    role: &str,
) -> anyhow::Result<JoinOutcome> {
    let location = GatewayLocation {
        urls,
        ..GatewayLocation::default()
    };
    let admin = GatewayClient::new(&location, Some(&nodes.admin))?;
    let body = json!({ "role": role, "boundId": format!("the-{role}") });
    let call = GatewayCall::post("/platform/v1/invitations", body.to_string());
    let made = admin.expect(&call, &[201], deadline()).await?.json()?;
    let invitation = InvitationLink::parse(made["link"].as_str().context("a link")?)?;
    let file = ProfileFile::at(config.path().join(format!("countersign/{role}.toml")));
    let (clock, name) = (Clock::system(), DeviceName::parse("bench")?);
    Ok(join(&file, false, &clock, &invitation, &location, &name).await?)
}

impl Ends {
    async fn pair(nodes: &Running, urls: &[String]) -> anyhow::Result<Self> {
        let config = TempDir::new()?;
        let JoinOutcome::Enforcer(_, file) = joined(nodes, &config, urls, "enforcer").await? else {
            anyhow::bail!("not an enforcer");
        };
        let JoinOutcome::Approver(mut approver) = joined(nodes, &config, urls, "approver").await?
        else {
            anyhow::bail!("not an approver");
        };
        let EnrolmentProgress::InForce = approver.enrol().await? else {
            anyhow::bail!("not the first device");
        };
        let mut enforcer = Enforcer::open(&file, &Clock::system())?;
        let attempt = enforcer.begin_pairing(None, None).await?;
        let link = PairingLink::parse(&attempt.link("http://127.0.0.1"))?;
        approver.pair_by_link(&link).await?;
        let completed = enforcer.wait_for_answer(attempt).await?;
        let (received, pairing) = completed.context("an answer")?.split();
        let ReceivedAnswer::Proven(device) = received else {
            anyhow::bail!("a link proves");
        };
        enforcer.pin(&device, pairing)?;
        Ok(Self {
            config,
            approver: *approver,
        })
    }

    /// Approves whatever arrives, until it is dropped.
    async fn approve(&self) -> anyhow::Result<()> {
        let choice = ApproverChoice {
            verdict: Verdict::Approve,
            scope: DecisionScope::Once,
            lasts: None,
            hints: ArtifactHints::default(),
        };
        let mut watch = self.approver.watch();
        loop {
            if let PushedEvent::Envelope(envelope) = watch.next().await?
                && let Some(item) = self.approver.read_pushed(&envelope).await?
            {
                self.approver.decide(&item, &choice).await?;
            }
        }
    }

    /// How long the command takes, in milliseconds.
    async fn run(&self) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let status = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .env("XDG_CONFIG_HOME", self.config.path())
            .env("COUNTERSIGN_PROFILE", "enforcer")
            .args(["run", "--quiet", "--", "true"])
            .stdin(Stdio::null())
            .status()
            .await?;
        anyhow::ensure!(status.success(), "{status}");
        Ok(begun.elapsed().as_secs_f64() * 1_000.0)
    }
}

/// How long a hook takes that nobody is asked about, in milliseconds.
async fn free_hook(config: &TempDir, project: &Path) -> anyhow::Result<f64> {
    let input = json!({
        "session_id": "s", "cwd": project, "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": { "command": "git status" },
    });
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .env("XDG_CONFIG_HOME", config.path())
        .env("HOME", config.path().join("home"))
        .env("COUNTERSIGN_PROFILE", "enforcer")
        .args(["hook", "claude"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    stdin.write_all(input.to_string().as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    anyhow::ensure!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    Ok(took)
}

pub async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let nodes = bench.nodes(1).await?;
    let urls: Vec<String> = (nodes.addresses.iter())
        .map(|address| format!("http://{address}"))
        .collect();
    let ends = Ends::pair(&nodes, &urls).await?;
    let location = GatewayLocation {
        urls: &urls,
        ..GatewayLocation::default()
    };
    let client = GatewayClient::new(&location, Some(&nodes.enforcer))?;
    let measuring = async {
        // The approver's channel has to be open.
        sleep(Duration::from_secs(1)).await;
        let (mut calls, mut runs) = (Vec::new(), Vec::new());
        for number in 0..WARM_UP + RUNS {
            let begun = Instant::now();
            for _ in 0..2 {
                client
                    .expect(&GatewayCall::get("/v1/status"), &[200], deadline())
                    .await?;
            }
            let two_calls = begun.elapsed().as_secs_f64() * 1_000.0;
            let run = ends.run().await?;
            if number >= WARM_UP {
                calls.push(two_calls);
                runs.push(run);
            }
        }
        anyhow::Ok((median(calls), median(runs)))
    };
    let policy = ends.config.path().join("countersign/policy.toml");
    std::fs::write(&policy, "[allow]\ncommands = [\"git status\"]\n")?;
    std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o600))?;
    let project = ends.config.path().join("project");
    std::fs::create_dir_all(project.join(".git"))?;
    let mut hooks = Vec::new();
    for number in 0..WARM_UP + RUNS {
        let took = free_hook(&ends.config, &project).await?;
        if number >= WARM_UP {
            hooks.push(took);
        }
    }
    let (two_calls, run) = tokio::select! {
        measured = measuring => measured?,
        failed = ends.approve() => {
            failed?;
            anyhow::bail!("the approver stopped");
        }
    };
    nodes.stop().await?;
    bench.report.add(
        "`run -- true`, approved at once, p50",
        (run, "ms"),
        (RUN_MS, "ms"),
        Target::AtMost(1.0),
    );
    bench.report.add(
        "the same, against the two calls that it cannot do without",
        (run, "ms"),
        (two_calls, "ms"),
        Target::Open,
    );
    bench.report.add(
        "`hook claude`, allowed by the policy, p50",
        (median(hooks), "ms"),
        (HOOK_MS, "ms"),
        Target::AtMost(1.0),
    );
    Ok(())
}
