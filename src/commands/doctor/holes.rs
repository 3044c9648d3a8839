//! What is known of the agents: with which versions it was measured, and what no configuration closes.

use countersign::agent::Agent;

/// The version that everything was tried with.
pub fn measured(agent: Agent) -> Option<&'static str> {
    match agent {
        Agent::Claude => Some("2.1.325"),
        Agent::Codex => Some("0.166.0"),
        Agent::Copilot => Some("1.0.102"),
        Agent::Gemini => Some("0.61.0"),
        Agent::Opencode => Some("1.18.33"),
        Agent::Cursor => None,
    }
}

/// The names of its program, the first one that exists counts.
pub fn programs(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => &["claude"],
        Agent::Codex => &["codex"],
        Agent::Copilot => &["copilot"],
        Agent::Gemini => &["gemini"],
        Agent::Opencode => &["opencode"],
        Agent::Cursor => &["cursor-agent", "cursor"],
    }
}

/// What remains open with the hook in place. `managed` is whether projects cannot switch it off.
pub fn known(agent: Agent, managed: bool) -> Vec<&'static str> {
    const SUSPENDED: &str =
        "if it is suspended for more than a day while the hook waits, the call happens";
    const OTHERS: &str = "another hook can change the input after it was approved";
    let mut holes = match agent {
        Agent::Claude => vec![
            "if the shell around the hook is killed, versions that do not know onFailure go on",
        ],
        Agent::Codex => vec![
            SUSPENDED,
            "if the shell around the hook is killed, the call happens",
            "what is typed into an approved interactive program (write_stdin) is not asked about",
        ],
        Agent::Copilot => vec![SUSPENDED],
        Agent::Gemini => vec![
            SUSPENDED,
            "if the shell around the hook is killed, the call happens",
            "a project can disable the hook by its name, also a managed one",
        ],
        Agent::Opencode => {
            vec!["with --pure or OPENCODE_PURE=1 the plugin is not loaded, and nothing is asked"]
        }
        Agent::Cursor => {
            vec!["nothing of this was measured: its format is taken from its documentation"]
        }
    };
    match agent {
        Agent::Claude | Agent::Codex | Agent::Copilot if !managed => {
            holes.push("a project can switch hooks off, unless they are managed");
        }
        Agent::Gemini if !managed => {
            holes.push(
                "a project can switch all hooks off with hooksConfig, unless they are managed",
            );
        }
        _ => {}
    }
    if agent != Agent::Opencode && !(managed && matches!(agent, Agent::Claude | Agent::Codex)) {
        holes.push(OTHERS);
    }
    if matches!(agent, Agent::Claude | Agent::Gemini) {
        holes.push("a project's files can set environment variables, which the hook starts with");
    }
    holes
}
