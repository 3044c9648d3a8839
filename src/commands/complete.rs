//! Completion in a shell. The shell's script calls this program, which knows the profiles, pairings
//! and requests of this user.

use std::ffi::OsString;
use std::io::Write as _;
use std::time::Duration;

use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{EnvCompleter, Shells};
use countersign::agent::Agent;
use countersign::client::approver::Approver;
use countersign::client::enforcer::Enforcer;
use countersign::client::profile::{Profile, ProfileError, ProfileFile};
use countersign::client::visible;
use countersign::clock::Clock;

use super::short_id::short_id;

pub const EXAMPLES: &str = "\
Install it:
  bash   countersign completions bash > ~/.local/share/bash-completion/completions/countersign
  zsh    countersign completions zsh > ~/.zfunc/_countersign
         (with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc)
  fish   countersign completions fish > ~/.config/fish/completions/countersign.fish
Then open a new shell. Do it again after an upgrade.";

const VARIABLE: &str = "COUNTERSIGN_COMPLETE";
/// Nobody waits longer for a suggestion.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(2);

/// The script that makes a shell complete this program's commands.
pub fn script(shell: Shell) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string());
    let completer = completer.ok_or_else(|| anyhow::anyhow!("{shell} has no completion"))?;
    let name = "countersign";
    completer.write_registration(VARIABLE, name, name, name, &mut std::io::stdout())?;
    Ok(())
}

/// Answers the script of a shell, which passes the words after `--`. None if this is another call.
/// The variable alone decides nothing: a hook must not end without a verdict.
pub fn answer(command: impl FnOnce() -> Command) -> Option<std::io::Result<()>> {
    let mut words = std::env::args_os().skip(1);
    let shell = std::env::var(VARIABLE).ok()?;
    if words.next()? != "--" {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell).filter(|_| !words.is_empty())?;
    Some(complete(completer, command(), words))
}

fn complete(
    completer: &dyn EnvCompleter,
    mut command: Command,
    words: Vec<OsString>,
) -> std::io::Result<()> {
    command.build();
    let here = std::env::current_dir().ok();
    let mut text = Vec::new();
    completer.write_complete(&mut command, words, here.as_deref(), &mut text)?;
    std::io::stdout().write_all(&text)
}

pub fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let agents = Agent::ALL.into_iter();
        let suggest =
            |it: Agent| CompletionCandidate::new(it.as_str()).help(Some(it.title().into()));
        agents.map(suggest).collect()
    })
}

pub fn profiles() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = profile_names().unwrap_or_default().into_iter();
        names.map(CompletionCandidate::new).collect()
    })
}

/// The approvers and enforcers that the profile is paired with.
pub fn pairings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut found = approver_ids();
        found.extend(enforcer_ids());
        found
    })
}

pub fn approvers() -> ArgValueCandidates {
    ArgValueCandidates::new(approver_ids)
}

pub fn enforcers() -> ArgValueCandidates {
    ArgValueCandidates::new(enforcer_ids)
}

/// The requests that wait, by their short ids.
pub fn requests() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = with_gateway(async |approver: &Approver| approver.find("").await.ok());
        let found = found.unwrap_or_default();
        let ids: Vec<_> = found.iter().map(|it| it.request_id.as_str()).collect();
        let suggestions = found.iter().filter_map(|request| {
            let kind = request.artifact_type.as_deref().unwrap_or("unknown");
            let who = request.enforcer_id.as_ref().map_or("", |id| id.as_str());
            let help = format!("{kind} from {who}");
            suggestion(short_id(request.request_id.as_str(), &ids), Some(&help))
        });
        suggestions.collect()
    })
}

pub fn devices() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = with_gateway(async |approver: &Approver| approver.devices().await.ok());
        let found = found.map(|devices| devices.listed).unwrap_or_default();
        let in_force = found.iter().filter(|it| it.standing.is_in_force());
        let suggest = in_force.filter_map(|it| suggestion(&it.id.to_string(), Some(&it.name)));
        suggest.collect()
    })
}

pub fn grants() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let read = || {
            Enforcer::open(&file().ok()?, &Clock::system())
                .ok()?
                .grants()
                .ok()
        };
        let found = read().unwrap_or_default();
        let ids: Vec<_> = found.iter().map(|kept| &kept.request_id).collect();
        let suggestions = found
            .iter()
            .filter_map(|kept| suggestion(short_id(&kept.request_id, &ids), Some(&kept.approver)));
        suggestions.collect()
    })
}

pub fn sets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let read = || {
            Enforcer::open(&file().ok()?, &Clock::system())
                .ok()?
                .open_sets()
                .ok()
        };
        let found = read().unwrap_or_default();
        let ids: Vec<_> = found.iter().map(|set| set.id.as_str()).collect();
        let suggestions = ids.iter().map(|id| suggestion(short_id(id, &ids), None));
        suggestions.flatten().collect()
    })
}

/// Only plain words: a shell would interpret others, and the gateway chooses ids.
fn suggestion(value: &str, help: Option<&str>) -> Option<CompletionCandidate> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    let help = help.map(|help| visible(help).into());
    let is_word = !value.is_empty() && value.chars().all(is_plain);
    is_word.then(|| CompletionCandidate::new(value).help(help))
}

/// The profile that the words name, or the usual one.
fn file() -> Result<ProfileFile, ProfileError> {
    let words: Vec<String> = std::env::args().collect();
    let mut named = None;
    for (index, word) in words.iter().enumerate() {
        if word == "--profile" {
            named = words.get(index + 1).cloned();
        } else if let Some(name) = word.strip_prefix("--profile=") {
            named = Some(name.to_owned());
        }
    }
    usual_profile(named)
}

/// The profile of this name, or the one that commands use without `--profile`.
pub fn usual_profile(named: Option<String>) -> Result<ProfileFile, ProfileError> {
    let name = named.or_else(|| std::env::var("COUNTERSIGN_PROFILE").ok());
    ProfileFile::named(name.as_deref().unwrap_or("default"))
}

fn profile() -> Profile {
    file().and_then(|file| file.load()).unwrap_or_default()
}

pub fn profile_names() -> Option<Vec<String>> {
    let file = ProfileFile::named("default").ok()?;
    let entries = std::fs::read_dir(file.path().parent()?).ok()?;
    let names = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let name = name.strip_suffix(".toml")?.to_owned();
        // Beside the profiles lies the policy.
        (name != "policy" && ProfileFile::named(&name).is_ok()).then_some(name)
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    Some(names)
}

fn approver_ids() -> Vec<CompletionCandidate> {
    let records = profile().enforcer.map(|it| it.approvers);
    let records = records.unwrap_or_default().into_iter();
    let suggestions = records.filter_map(|it| suggestion(&it.id, Some("approver")));
    suggestions.collect()
}

fn enforcer_ids() -> Vec<CompletionCandidate> {
    let records = profile().approver.map(|it| it.enforcers);
    let records = records.unwrap_or_default().into_iter();
    let suggest = |label: Option<String>| label.unwrap_or_else(|| "enforcer".to_owned());
    let suggestions = records.filter_map(|it| suggestion(&it.id, Some(&suggest(it.label))));
    suggestions.collect()
}

/// Asks the gateway as this approver, unless a passphrase would have to be typed.
fn with_gateway<T>(ask: impl AsyncFnOnce(&Approver) -> Option<T>) -> Option<T> {
    let approver = Approver::open(&file().ok()?, &Clock::system()).ok()?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().ok()?;
    let asking = async { tokio::time::timeout(GATEWAY_TIMEOUT, ask(&approver)).await };
    runtime.block_on(asking).ok().flatten()
}
