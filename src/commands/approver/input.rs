//! A profile, an argument, a request or a yes, as the approver's commands take them from a person.

use std::io::{BufRead as _, IsTerminal as _, Read as _};

use anyhow::Context as _;
use countersign::client::approver::{Approver, InboxRequest};
use countersign::client::{ClientError, visible};

use super::passphrase;
use crate::commands::client_options::{ClientOptions, NOT_UNIQUE};
use crate::commands::terminal::ask;

/// Longer than any link.
const MAX_LINK_BYTES: u64 = 64 << 10;

pub fn open(options: &ClientOptions) -> anyhow::Result<Approver> {
    passphrase::open(&options.file()?)
}

/// An argument, or the first line of standard input if it is `-`: other users can see arguments.
pub fn argument_or_input(argument: &str) -> anyhow::Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut line = String::new();
    let mut input = std::io::stdin().lock().take(MAX_LINK_BYTES);
    input.read_line(&mut line).context("standard input")?;
    Ok(line.trim().to_owned())
}

/// Asks a person at the terminal. An error if there is no terminal.
pub async fn says_yes(question: &str) -> anyhow::Result<bool> {
    let answer = ask(&format!("{question} [y/N]")).await;
    let answer = answer.map_err(|_| ClientError::Choice("there is no terminal to ask on"))?;
    Ok(answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"))
}

pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The request whose id begins with `prefix`, or without one the only request that waits, if any
/// does.
pub async fn select(
    approver: &Approver,
    prefix: Option<&str>,
) -> anyhow::Result<Option<InboxRequest>> {
    if prefix == Some("") {
        return Err(ClientError::Choice("an id is not empty").into());
    }
    let mut found = approver.find(prefix.unwrap_or_default()).await?;
    let first = found.pop();
    let is_only = found.is_empty();
    match (prefix, first) {
        (None, first) if is_only => Ok(first),
        (None, _) => {
            let problem = "more than one request waits; say which: countersign inbox";
            Err(ClientError::Choice(problem).into())
        }
        (Some(_), Some(request)) if is_only => Ok(Some(request)),
        (Some(prefix), None) => Err(anyhow::Error::new(ClientError::NoLongerPending).context(
            format!("no request {} waits for a decision", visible(prefix)),
        )),
        (Some(prefix), Some(_)) => Err(anyhow::Error::new(NOT_UNIQUE)
            .context(format!("several requests begin with {}", visible(prefix)))),
    }
}
