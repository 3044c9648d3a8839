//! The guard's socket: one call on each connection, from the user who may ask.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign::agent::{demands_unseen, own_policy};
use countersign::client::profile::ProfileFile;
use nix::unistd::{Uid, User};
use tokio::io::BufReader;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::{INTERRUPTED, answer};
use super::message::{AskCall, ChangeReport, GuardCall, GuardReply, read, write};
use crate::commands::hook::report::observe;

/// Connections at once. Another one waits.
const MAX_CONNECTIONS: usize = 64;
/// A caller writes its call at once, and looks at its files in this time.
const CALLER_TIMEOUT: Duration = Duration::from_secs(30);
/// Requests that wait are withdrawn within this time when the guard ends.
const END_TIMEOUT: Duration = Duration::from_secs(6);
/// After an error of the system, such as too many open files.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The reason that a caller gives for a change is cut after this many characters.
const MAX_CHANGE_CHARS: usize = 1_000;

/// Binds the socket. A socket that a guard has left behind is replaced; anything else is not.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let metadata = fs::metadata(directory)?;
    let owners = [0, Uid::effective().as_raw()];
    if !owners.contains(&metadata.uid()) || metadata.mode() & 0o022 != 0 {
        let message = format!("others can write to {}", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                let message = format!("{} is in use", path.display());
                return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
            }
            fs::remove_file(path)?;
        }
        Ok(_) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    // Everyone may connect; the system tells who it is.
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

pub async fn serve(
    listener: &UnixListener,
    file: &ProfileFile,
    user: Uid,
    stop: &CancellationToken,
) {
    let tasks = TaskTracker::new();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_RETRY_INTERVAL).await;
            continue;
        };
        let peer = stream.peer_cred().map(|peer| peer.uid());
        if !peer.is_ok_and(|uid| uid == user.as_raw()) {
            continue;
        }
        let permit = tokio::select! {
            permit = Arc::clone(&room).acquire_owned() => permit,
            () = stop.cancelled() => break,
        };
        let (file, stop) = (file.clone(), stop.child_token());
        tasks.spawn(async move {
            // A caller that is gone hears nothing.
            let _gone = attend(stream, &file, user, stop).await;
            drop(permit);
        });
    }
    tasks.close();
    let _left = timeout(END_TIMEOUT, tasks.wait()).await;
}

async fn attend(
    stream: UnixStream,
    file: &ProfileFile,
    user: Uid,
    stop: CancellationToken,
) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let heard = tokio::select! {
        heard = timeout(CALLER_TIMEOUT, read(&mut from)) => heard,
        () = stop.cancelled() => return Ok(()),
    };
    let call = match heard {
        Ok(Ok(Some(call))) => call,
        Ok(Ok(None)) | Err(_) => return Ok(()),
        Ok(Err(_)) => {
            let message = "the guard does not understand this call".to_owned();
            return tell(&mut to, &GuardReply::Failed { message }).await;
        }
    };
    let reply = match call {
        GuardCall::Policy => match own_policy(file) {
            Ok(policy) => GuardReply::Policy { text: policy.text },
            Err(message) => GuardReply::Failed { message },
        },
        GuardCall::Observe { session, event } => GuardReply::Observed {
            context: observe(&session, event, file).await,
        },
        GuardCall::Ask(call) => return ask(from, to, file, user, *call, stop).await,
    };
    tell(&mut to, &reply).await
}

/// Writes a reply. A caller that does not read it in time loses it.
async fn tell(to: &mut OwnedWriteHalf, reply: &GuardReply) -> io::Result<()> {
    let told = timeout(CALLER_TIMEOUT, write(to, reply)).await;
    told.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The home directory of a user. A directory of users may be away.
async fn home_of(user: Uid) -> Option<PathBuf> {
    let found = tokio::task::spawn_blocking(move || User::from_uid(user)).await;
    found.ok()?.ok()?.map(|user| user.dir)
}

/// A request. It ends with the connection.
async fn ask(
    mut from: BufReader<OwnedReadHalf>,
    mut to: OwnedWriteHalf,
    file: &ProfileFile,
    user: Uid,
    mut call: AskCall,
    stop: CancellationToken,
) -> io::Result<()> {
    // The caller may leave out a rule.
    let home = home_of(user).await;
    let own = own_policy(file).and_then(|own| demands_unseen(&call.payload, home, file, &own));
    match own {
        Ok(own) => call.rules.extend(own),
        Err(message) => return tell(&mut to, &GuardReply::Failed { message }).await,
    }
    let (heard, mut hearing) = mpsc::channel(1);
    let gone = stop.clone();
    let is_expected = Arc::new(AtomicBool::new(false));
    let expected = Arc::clone(&is_expected);
    // A message that comes unasked ends the request, as the end of the connection does.
    let listening = tokio::spawn(async move {
        while let Ok(Some(holding)) = read::<ChangeReport>(&mut from).await {
            if !expected.swap(false, Ordering::Relaxed) || heard.try_send(holding).is_err() {
                break;
            }
        }
        gone.cancel();
    });
    let (say, mut said) = mpsc::unbounded_channel();
    let telling = say.clone();
    let mut asked = move |id: &str, approvers: Vec<String>, seconds: u64| {
        let request_id = id.to_owned();
        let _gone = telling.send(GuardReply::Asked {
            request_id,
            approvers,
            seconds,
        });
    };
    let still_holds = async || {
        is_expected.store(true, Ordering::Relaxed);
        let _gone = say.send(GuardReply::Holds);
        match timeout(CALLER_TIMEOUT, hearing.recv()).await {
            Ok(Some(ChangeReport { change: None })) => Ok(()),
            Ok(Some(ChangeReport {
                change: Some(change),
            })) => Err(change.chars().take(MAX_CHANGE_CHARS).collect()),
            Ok(None) | Err(_) => Err(INTERRUPTED.to_owned()),
        }
    };
    let answering = answer(file, call, &stop, &mut asked, still_holds);
    tokio::pin!(answering);
    let reply = loop {
        tokio::select! {
            biased;
            // A caller that is gone is noticed by `listening`, and its request withdrawn.
            Some(message) = said.recv() => drop(tell(&mut to, &message).await),
            reply = &mut answering => break reply,
        }
    };
    listening.abort();
    tell(&mut to, &GuardReply::Answered(reply)).await
}
