//! The guard's socket: one call on each connection, from the users who may ask.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign::client::profile::ProfileFile;
use tokio::io::BufReader;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::{INTERRUPTED, answer};
use super::message::{AskCall, GuardCall, GuardReply, Holding, read, write};
use crate::commands::hook::files::own_policy;
use crate::commands::hook::report::observe;
use crate::commands::remark;

/// Connections at once. Another one waits.
const MAX_CONNECTIONS: usize = 256;
/// A caller writes its call at once, and looks at its files in this time.
const CALLER_TIMEOUT: Duration = Duration::from_secs(30);
/// Requests that wait are withdrawn within this time when the guard ends.
const END_TIMEOUT: Duration = Duration::from_secs(6);
/// After an error of the system, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Binds the socket. A socket that a guard has left behind is replaced; anything else is not.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
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
    users: &HashSet<u32>,
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
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let peer = stream.peer_cred().map(|peer| peer.uid());
        if !peer.as_ref().is_ok_and(|uid| users.contains(uid)) {
            remark("a user who may not ask has connected");
            continue;
        }
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            break;
        };
        let (file, stop) = (file.clone(), stop.child_token());
        tasks.spawn(async move {
            // A caller that is gone hears nothing.
            let _gone = attend(stream, &file, stop).await;
            drop(permit);
        });
    }
    tasks.close();
    let _left = timeout(END_TIMEOUT, tasks.wait()).await;
}

async fn attend(stream: UnixStream, file: &ProfileFile, stop: CancellationToken) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let call = match timeout(CALLER_TIMEOUT, read(&mut from)).await {
        Ok(Ok(Some(call))) => call,
        Ok(Ok(None)) | Err(_) => return Ok(()),
        Ok(Err(error)) => {
            let message = format!("the guard does not understand this: {error}");
            return write(&mut to, &GuardReply::Failed { message }).await;
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
        GuardCall::Ask(call) => return ask(from, to, file, *call, stop).await,
    };
    write(&mut to, &reply).await
}

/// A question. It ends with the connection.
async fn ask(
    mut from: BufReader<OwnedReadHalf>,
    mut to: OwnedWriteHalf,
    file: &ProfileFile,
    call: AskCall,
    stop: CancellationToken,
) -> io::Result<()> {
    let (heard, mut hearing) = mpsc::channel(1);
    let gone = stop.clone();
    let listening = tokio::spawn(async move {
        while let Ok(Some(holding)) = read::<Holding>(&mut from).await {
            if heard.send(holding).await.is_err() {
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
        let _gone = say.send(GuardReply::Holds);
        match timeout(CALLER_TIMEOUT, hearing.recv()).await {
            Ok(Some(Holding { change: None })) => Ok(()),
            Ok(Some(Holding {
                change: Some(change),
            })) => Err(change),
            Ok(None) | Err(_) => Err(INTERRUPTED.to_owned()),
        }
    };
    let answering = answer(file, call, &stop, &mut asked, still_holds);
    tokio::pin!(answering);
    let reply = loop {
        tokio::select! {
            biased;
            // A caller that is gone is noticed by `listening`, and its request withdrawn.
            Some(message) = said.recv() => drop(write(&mut to, &message).await),
            reply = &mut answering => break reply,
        }
    };
    listening.abort();
    write(&mut to, &GuardReply::Answered(reply)).await
}
