//! When nobody waits for a hook's answer any more: the agent has ended, or the turn in which it asked. The request is then withdrawn, so
//! that nobody approves something without effect.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::Duration;

use countersign::agent::{Agent, Event};
use countersign::client::profile::ProfileFile;
use countersign::protocol::canonical::Sha256Hex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd as _;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// No hook waits longer.
const MARK_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The file that says that a turn has ended.
pub struct TurnMark(PathBuf);

impl TurnMark {
    /// None for agents that do not name their turns.
    pub fn of(agent: Agent, event: &Event, file: &ProfileFile) -> Option<Self> {
        let (session, turn) = (event.session.as_deref()?, event.turn.as_deref()?);
        let name = Sha256Hex::of(format!("{agent}\n{session}\n{turn}").as_bytes());
        let directory = file.path().with_extension("turns");
        Some(Self(directory.join(name.to_string())))
    }

    /// Writes that the turn has ended, and removes what no hook waits for any more.
    pub fn set(&self) -> io::Result<()> {
        let Some(directory) = self.0.parent() else {
            return Ok(());
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        fs::write(&self.0, "")?;
        for entry in fs::read_dir(directory)?.flatten() {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| changed.elapsed().ok());
            if age.is_some_and(|age| age > MARK_LIFETIME) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Cancels `stop` once nobody waits for the answer.
pub async fn stop_with_agent(mark: Option<TurnMark>, stop: CancellationToken) {
    loop {
        let is_over = mark.as_ref().is_some_and(|mark| mark.0.exists());
        if is_over || has_no_reader() {
            return stop.cancel();
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// Whether standard output is a pipe that nobody reads.
fn has_no_reader() -> bool {
    let output = io::stdout();
    let mut polled = [PollFd::new(output.as_fd(), PollFlags::empty())];
    let found = poll(&mut polled, PollTimeout::ZERO);
    found.is_ok()
        && polled[0]
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLERR))
}
