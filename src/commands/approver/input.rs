//! A profile, an argument, a request or a yes, as the approver's commands take them from a person.

use std::io::{BufRead as _, IsTerminal as _, Read as _};

use anyhow::Context as _;
use countersign::client::approver::{Approver, InboxRequest};
use countersign::client::{ClientError, visible};

use super::passphrase;
use super::view::{listed, summary};
use crate::commands::client_options::ClientOptions;
use crate::commands::short_id::several_match;
use crate::commands::terminal::{ask, output_has_colour};

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

/// The request whose id begins or ends with `part`, or without one the only request that waits, if
/// any does.
pub async fn select(
    approver: &Approver,
    part: Option<&str>,
) -> anyhow::Result<Option<InboxRequest>> {
    if part == Some("") {
        return Err(ClientError::Choice("the id is empty").into());
    }
    let mut found = approver.find(part.unwrap_or_default()).await?;
    let first = found.pop();
    let is_only = found.is_empty();
    match (part, first) {
        (None, first) if is_only => Ok(first),
        (None, _) => {
            let problem = "several requests are waiting; give the id of one: countersign inbox";
            Err(ClientError::Choice(problem).into())
        }
        (Some(_), Some(request)) if is_only => Ok(Some(request)),
        (Some(part), None) => Err(anyhow::Error::new(ClientError::NoLongerPending)
            .context(format!("no request {} is waiting", visible(part)))),
        (Some(part), Some(last)) => {
            let (now, colour) = (approver.now(), output_has_colour());
            let lines = found.iter().chain([&last]).map(|request| {
                let id = request.request_id.as_str();
                format!("\n{}", listed(id, &summary(request, now, colour), colour))
            });
            Err(several_match(part, &lines.collect::<String>()).into())
        }
    }
}
