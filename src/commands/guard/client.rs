//! Asking a guard. It is believed only if it runs as the user that the caller names.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use nix::unistd::{Uid, User};
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::message::{
    AgentSession, AskCall, AskReply, ChangeReport, GuardCall, GuardReply, ObservedEvent, read,
    write,
};

/// A guard answers a call that needs nobody else in this time.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The answer to a request may come later by this.
const ANSWER_GRACE: Duration = Duration::from_secs(20);

/// Stands in a socket's path for the name of the user who asks, so that one hook serves every user
/// of a machine.
pub const USER_PLACEHOLDER: &str = "{user}";

/// Where a guard listens, and as which user it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardAddress {
    user: String,
    socket: PathBuf,
}

impl FromStr for GuardAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            "expected USER:SOCKET, such as countersign-guard:/run/countersign-guard/dave/socket";
        let (user, socket) = text.split_once(':').ok_or(expected)?;
        let socket = PathBuf::from(socket);
        if user.is_empty() || !socket.is_absolute() {
            return Err(expected);
        }
        Ok(Self {
            user: user.to_owned(),
            socket,
        })
    }
}

impl fmt::Display for GuardAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.user, self.socket.display())
    }
}

impl GuardAddress {
    /// Where the guard of this user listens.
    pub fn socket(&self) -> Result<PathBuf, String> {
        let path = self.socket.to_string_lossy();
        if !path.contains(USER_PLACEHOLDER) {
            return Ok(self.socket.clone());
        }
        match User::from_uid(Uid::current()) {
            Ok(Some(user)) => Ok(path.replace(USER_PLACEHOLDER, &user.name).into()),
            Ok(None) => Err("this user has no name, so its guard cannot be found".to_owned()),
            Err(error) => Err(format!("the name of this user: {error}")),
        }
    }

    /// The user that the guard must run as.
    pub fn uid(&self) -> Result<Uid, String> {
        match User::from_name(&self.user) {
            Ok(Some(user)) => Ok(user.uid),
            Ok(None) => Err(format!("there is no user {}", self.user)),
            Err(error) => Err(format!("the user {}: {error}", self.user)),
        }
    }

    async fn connect(&self) -> Result<BufReader<UnixStream>, String> {
        let named = self.clone();
        // A directory of users may be away.
        let found = tokio::task::spawn_blocking(move || Ok((named.socket()?, named.uid())));
        let found = found.await.map_err(|error| error.to_string());
        let (socket, expected) = found.and_then(|found: Result<_, String>| found)?;
        let shown = socket.display();
        let away = |error: io::Error| format!("the guard at {shown} cannot be reached: {error}");
        let stream = UnixStream::connect(&socket).await.map_err(away)?;
        let peer = stream.peer_cred().map_err(away)?.uid();
        let expected = expected?;
        if peer != expected.as_raw() {
            return Err(format!(
                "the guard at {shown} does not run as {}, so it is not trusted",
                self.user
            ));
        }
        Ok(BufReader::new(stream))
    }

    async fn begin(&self, call: &GuardCall) -> Result<BufReader<UnixStream>, String> {
        let mut stream = self.connect().await?;
        write(&mut stream, call)
            .await
            .map_err(|error| broken(&error))?;
        Ok(stream)
    }

    /// A call that needs nobody but the guard.
    async fn call(&self, call: &GuardCall) -> Result<GuardReply, String> {
        let answering = async {
            let mut stream = self.begin(call).await?;
            next(&mut stream).await
        };
        let answered = timeout(CALL_TIMEOUT, answering).await;
        answered.unwrap_or_else(|_| Err(format!("the guard at {self} does not answer")))
    }

    /// The policy that counts.
    pub async fn policy(&self) -> Result<Option<String>, String> {
        match self.call(&GuardCall::Policy).await? {
            GuardReply::Policy { text } => Ok(text),
            other => Err(refused(other)),
        }
    }

    pub async fn observe(
        &self,
        session: AgentSession,
        event: ObservedEvent,
    ) -> Result<Option<String>, String> {
        match self.call(&GuardCall::Observe { session, event }).await? {
            GuardReply::Observed { context } => Ok(context),
            other => Err(refused(other)),
        }
    }

    /// Asks, for as long as the request may take. Dropping the future withdraws the request.
    pub async fn ask(
        &self,
        call: AskCall,
        asked: impl FnMut(&str, &[String], u64),
        still_holds: impl AsyncFnOnce() -> Result<(), String>,
    ) -> Result<AskReply, String> {
        let time = Duration::from_millis(call.timeout_ms).saturating_add(ANSWER_GRACE);
        let answered = timeout(time, self.ask_on(call, asked, still_holds)).await;
        answered.unwrap_or_else(|_| Err("the guard did not answer in time".to_owned()))
    }

    async fn ask_on(
        &self,
        call: AskCall,
        mut asked: impl FnMut(&str, &[String], u64),
        still_holds: impl AsyncFnOnce() -> Result<(), String>,
    ) -> Result<AskReply, String> {
        let mut stream = self.begin(&GuardCall::Ask(Box::new(call))).await?;
        let mut still_holds = Some(still_holds);
        loop {
            match next(&mut stream).await? {
                GuardReply::Asked {
                    request_id,
                    approvers,
                    seconds,
                } => asked(&request_id, &approvers, seconds),
                GuardReply::Holds => {
                    let check = still_holds.take().ok_or("the guard asked twice")?;
                    let change = check().await.err();
                    let answer = write(&mut stream, &ChangeReport { change }).await;
                    answer.map_err(|error| broken(&error))?;
                }
                GuardReply::Answered(reply) => return Ok(reply),
                other => return Err(refused(other)),
            }
        }
    }
}

async fn next(stream: &mut BufReader<UnixStream>) -> Result<GuardReply, String> {
    let reply = read(stream).await.map_err(|error| broken(&error))?;
    reply.ok_or_else(|| "the guard closed the connection".to_owned())
}

fn broken(error: &io::Error) -> String {
    format!("the connection to the guard broke: {error}")
}

fn refused(reply: GuardReply) -> String {
    match reply {
        GuardReply::Failed { message } => message,
        _ => "the guard gave an unexpected answer".to_owned(),
    }
}
