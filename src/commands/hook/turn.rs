//! Detects that nobody waits for a hook's answer: the agent or its turn has ended. The hook then
//! withdraws the request, so that nobody approves it without effect.

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use countersign::agent::{Agent, HookEvent};
use countersign::client::profile::ProfileFile;
use countersign::protocol::canonical::Sha256Hex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Agents wait at most a day for a hook, so that older marks concern nobody.
const MARK_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The file that says that a turn has ended.
pub struct TurnMark(PathBuf);

impl TurnMark {
    /// None for agents that do not name their turns.
    pub fn of(agent: Agent, event: &HookEvent, file: &ProfileFile) -> Option<Self> {
        let (session, turn) = (event.session.as_deref()?, event.turn.as_deref()?);
        let name = Sha256Hex::of(format!("{agent}\n{session}\n{turn}").as_bytes());
        let directory = file.path().with_extension("turns");
        Some(Self(directory.join(name.to_string())))
    }

    /// Writes that the turn has ended, and removes old marks.
    pub fn set(&self) -> io::Result<()> {
        let Some(directory) = self.0.parent() else {
            return Ok(());
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        fs::write(&self.0, "")?;
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let age = written_at(&entry.path()).and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > MARK_LIFETIME) {
                // Another hook may have removed it.
                let _gone = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}

fn written_at(path: &Path) -> Option<SystemTime> {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
}

/// Looks whether anybody still waits for the answer.
pub struct AgentWatch {
    mark: Option<TurnMark>,
    /// A turn can go on after its end, if another hook of the agent wants it to: an older mark says
    /// nothing.
    before: Option<SystemTime>,
}

impl AgentWatch {
    pub fn begin(mark: Option<TurnMark>) -> Self {
        let before = look(mark.as_ref());
        Self { mark, before }
    }

    /// Cancels `stop` once nobody waits for the answer.
    pub async fn cancel_with_agent(self, stop: CancellationToken) {
        while look(self.mark.as_ref()) == self.before && !has_no_reader() {
            sleep(POLL_INTERVAL).await;
        }
        stop.cancel();
    }
}

fn look(mark: Option<&TurnMark>) -> Option<SystemTime> {
    mark.and_then(|mark| written_at(&mark.0))
}

/// Whether nobody reads standard output: a pipe or a pair of sockets whose other end is closed.
fn has_no_reader() -> bool {
    let output = io::stdout();
    let mut polled = [PollFd::new(output.as_fd(), PollFlags::empty())];
    let found = poll(&mut polled, PollTimeout::ZERO);
    found.is_ok()
        && polled[0]
            .revents()
            .is_some_and(|events| events.intersects(PollFlags::POLLERR | PollFlags::POLLHUP))
}
