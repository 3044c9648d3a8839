//! Nodes, invitations, and the real commands at the other end.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::PATIENCE;
use super::chromium::Chromium;
use super::page::Page;
use crate::support::process::{Signal, countersign, signal};
use crate::support::{Client, Cluster};

/// A node with a tenant, and a place for the profiles of commands.
pub struct BrowserStage {
    pub cluster: Cluster,
    pub directory: tempfile::TempDir,
}

impl BrowserStage {
    pub async fn start() -> Self {
        Self::on(Cluster::start(1).await)
    }

    pub fn on(cluster: Cluster) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { cluster, directory }
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        self.cluster.urls().remove(0)
    }

    pub async fn invitation(&self, role: &str, id: &str) -> String {
        invite(&self.cluster.admin().await, role, id).await
    }

    /// An agent's enforcer that has joined, by command.
    pub async fn bot(&self, id: &str) -> Bot {
        let bot = Bot::new(self.directory.path(), id);
        bot.join(&self.invitation("enforcer", id).await).await;
        bot
    }

    /// A new browser that shows this page.
    pub async fn page(&self) -> Page {
        let [browser] = Chromium::start().await;
        Page::at(browser, &self.url())
    }

    /// Alice has joined in a browser and is paired with an agent.
    pub async fn paired() -> (Self, Bot, Page) {
        let stage = Self::start().await;
        let page = stage.page().await;
        let bot = stage.pair(&page).await;
        (stage, bot, page)
    }

    /// Alice joins in this browser and pairs with an agent.
    pub async fn pair(&self, page: &Page) -> Bot {
        let invitation = self.invitation("approver", "alice").await;
        page.join_first(&invitation, "phone").await;
        let bot = self.bot("bot").await;
        bot.pair(page).await;
        bot
    }
}

pub async fn invite(admin: &Client, role: &str, id: &str) -> String {
    let body = json!({ "role": role, "boundId": id });
    let made = admin.post("/platform/v1/invitations", &body).await;
    made.expect(201).json()["link"].as_str().unwrap().to_owned()
}

/// The commands of one profile.
pub struct Bot {
    config: PathBuf,
    profile: String,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

impl Bot {
    pub fn new(config: &Path, profile: &str) -> Self {
        Self {
            config: config.to_owned(),
            profile: profile.to_owned(),
        }
    }

    /// Without a controlling terminal, wherever the tests run.
    fn command(&self, arguments: &[&str]) -> Command {
        let program = countersign();
        let mut command = Command::new("setsid");
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .env("XDG_CONFIG_HOME", &self.config)
            .env("COUNTERSIGN_PROFILE", &self.profile)
            .arg(program.get_program())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Starts a command that waits for a person.
    pub fn begin(&self, arguments: &[&str]) -> Running {
        Running::of(self.command(arguments).spawn().unwrap())
    }

    /// The same, with something to read.
    pub fn begin_with(&self, arguments: &[&str], input: &str) -> Running {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut writer, input) = (child.stdin.take().unwrap(), input.to_owned());
        tokio::spawn(async move { writer.write_all(input.as_bytes()).await });
        Running::of(child)
    }

    pub async fn run(&self, arguments: &[&str]) -> Ran {
        self.begin(arguments).end().await
    }

    pub fn terminal(&self, line: &str) -> Terminal {
        Terminal::open(&self.config, &self.profile, line)
    }

    pub async fn join(&self, invitation: &str) {
        self.run(&["join", invitation]).await.expect(0);
    }

    /// Pairs with the approver that has joined in this browser.
    pub async fn pair(&self, page: &Page) {
        let mut pairing = self.begin(&["pair", "--label", "build machine"]);
        let link = pairing.says("/#/pair/").await;
        page.pair(&page.here(&link)).await;
        pairing.end().await.expect(0);
    }
}

/// A command under way.
pub struct Running {
    child: Child,
    errors: BufReader<ChildStderr>,
    said: String,
}

impl Running {
    fn of(mut child: Child) -> Self {
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            errors,
            said: String::new(),
        }
    }

    /// The next line of standard error that has this in it.
    pub async fn says(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, self.errors.read_line(&mut line)).await;
            let count = read.expect("a line in time").unwrap();
            self.said.push_str(&line);
            assert!(count > 0, "it ended without saying {part}: {}", self.said);
            if line.contains(part) {
                return line;
            }
        }
    }

    pub fn interrupt(&self) {
        signal(self.child.id().unwrap(), Signal::SIGINT);
    }

    pub async fn end(mut self) -> Ran {
        let mut out = String::new();
        let mut output = self.child.stdout.take().unwrap();
        let reading = async {
            let (out, err) = (
                output.read_to_string(&mut out),
                self.errors.read_to_string(&mut self.said),
            );
            let (out, err) = tokio::join!(out, err);
            out.and(err).unwrap();
            self.child.wait().await.unwrap()
        };
        let status = timeout(PATIENCE, reading).await.expect("it ends in time");
        Ran {
            code: status.code().unwrap_or(-1),
            out,
            err: self.said,
        }
    }
}

/// A command in a terminal of its own, where things are typed.
pub struct Terminal {
    child: Child,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
    said: String,
}

impl Terminal {
    pub fn open(config: &Path, profile: &str, line: &str) -> Self {
        let program = countersign();
        let mut command = Command::new("script");
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let directory = Path::new(program.get_program()).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut child = command
            .env("XDG_CONFIG_HOME", config)
            .env("COUNTERSIGN_PROFILE", profile)
            .env("NO_COLOR", "1")
            .env("PATH", format!("{}:{path}", directory.display()))
            .args([
                "--quiet",
                "--flush",
                "--return",
                "--command",
                line,
                "/dev/null",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("util-linux");
        Self {
            input: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()),
            child,
            said: String::new(),
        }
    }

    pub async fn types(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next line that has this in it.
    pub async fn says(&mut self, part: &str) -> String {
        self.says_line(|line| line.contains(part)).await
    }

    /// Waits for a question, which has no end of a line.
    pub async fn asks(&mut self, part: &str) {
        let mut said = Vec::new();
        while !said.ends_with(part.as_bytes()) {
            let byte = timeout(PATIENCE, self.lines.read_u8()).await;
            said.push(byte.expect("it asks in time").unwrap());
        }
        self.said.push_str(&String::from_utf8_lossy(&said));
    }

    pub async fn says_line(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, self.lines.read_line(&mut line)).await;
            let count = read.unwrap_or_else(|_| panic!("no such line in time: {}", self.said));
            self.said.push_str(&line);
            assert!(count.unwrap() > 0, "it ended: {}", self.said);
            if wanted(&line) {
                return line;
            }
        }
    }

    /// All of its output, and how it ended.
    pub async fn end(mut self) -> Ran {
        let reading = async {
            self.lines.read_to_string(&mut self.said).await.unwrap();
            self.child.wait().await.unwrap()
        };
        let status = timeout(PATIENCE, reading).await.expect("it ends in time");
        Ran {
            code: status.code().unwrap_or(-1),
            out: self.said,
            err: String::new(),
        }
    }
}
