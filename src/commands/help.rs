//! The help of the whole program: commands in groups, and the gateway's options only where they
//! count.

use std::fmt::Write as _;

use clap::{Arg, Command};

/// Commands that are not built in are left out.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Set up",
        &["join", "pair", "pairings", "unpair", "completions"],
    ),
    (
        "Decide, as an approver",
        &[
            "inbox",
            "show",
            "approve",
            "reject",
            "prompt",
            "pause",
            "resume",
            "devices",
            "team",
            "notifications",
            "passphrase",
            "verify",
            "log",
            "receipt",
            "anchors",
        ],
    ),
    (
        "Ask, on an agent's machine",
        &[
            "run", "ask", "waiting", "install", "doctor", "policy", "grants", "sets", "mcp",
            "hook", "guard",
        ],
    ),
    (
        "Operate a gateway",
        &[
            "dev",
            "serve",
            "migrate",
            "check",
            "health",
            "invite",
            "tenant",
            "credential",
            "key",
            "device",
            "token",
            "page",
        ],
    ),
];

/// Groups the commands, and hides the options of every command from the help of these `clients`,
/// which ignore them.
pub fn arrange<'a>(command: Command, clients: impl Iterator<Item = &'a str>) -> Command {
    let global = command.get_arguments().filter(|arg| arg.is_global_set());
    let hidden: Vec<Arg> = global.cloned().map(|arg| arg.hide(true)).collect();
    let command = clients.fold(command, |command, client| {
        command.mut_subcommand(client, |it| it.args(&hidden))
    });
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        groups(&command),
        heading(&command, "Options")
    );
    command.help_template(template)
}

fn heading(command: &Command, title: &str) -> String {
    let style = command.get_styles().get_header();
    format!("{style}{title}:{style:#}")
}

fn groups(command: &Command) -> String {
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let is_listed = |name: &&str| GROUPS.iter().any(|(_, listed)| listed.contains(name));
    let width = names
        .iter()
        .map(|name| name.len())
        .max()
        .unwrap_or_default();
    let others: Vec<&str> = (names.into_iter().filter(|name| !is_listed(name))).collect();
    let literal = command.get_styles().get_literal();
    let mut text = String::new();
    for (title, names) in GROUPS.iter().copied().chain([("More", others.as_slice())]) {
        let found = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        let mut lines = found.map(|it| {
            let (name, about) = (it.get_name(), it.get_about().cloned().unwrap_or_default());
            format!("  {literal}{name:<width$}{literal:#}  {about}\n")
        });
        if let Some(first) = lines.next() {
            let heading = heading(command, title);
            let rest: String = lines.collect();
            let _never = write!(text, "{heading}\n{first}{rest}\n");
        }
    }
    text
}
