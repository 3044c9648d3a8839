//! Each case: what is done to a call, and how every agent reacts. The known holes are named here
//! and nowhere else in the code; `docs/agents` and `countersign doctor` tell users of them.

use clap::ValueEnum;
use countersign::agent::Agent;

use super::agents::Tool;

/// The approver's reason for a rejection.
pub const REASON: &str = "Not on a Friday.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    Approved,
    Rejected,
    /// Nobody decides.
    Undecided,
    /// The file is changed while the approver looks at the edit, and then it is approved.
    FileChanged,
    GatewayDown,
    ProfileMissing,
    /// The hook is killed while it waits.
    HookKilled,
    /// The hook and every shell around it are killed.
    AllKilled,
    DiskFull,
    /// The agent is stopped with its hook, as by Ctrl-Z, until the hook's time is over.
    Suspended,
    /// Approved, and the gateway alters the decision.
    Altered,
    /// The gateway claims that everything is approved.
    Claimed,
}

impl Case {
    pub const ALL: [Self; 12] = [
        Self::Approved,
        Self::Rejected,
        Self::Undecided,
        Self::FileChanged,
        Self::GatewayDown,
        Self::ProfileMissing,
        Self::HookKilled,
        Self::AllKilled,
        Self::DiskFull,
        Self::Suspended,
        Self::Altered,
        Self::Claimed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Undecided => "undecided",
            Self::FileChanged => "file-changed",
            Self::GatewayDown => "gateway-down",
            Self::ProfileMissing => "profile-missing",
            Self::HookKilled => "hook-killed",
            Self::AllKilled => "all-killed",
            Self::DiskFull => "disk-full",
            Self::Suspended => "suspended",
            Self::Altered => "altered",
            Self::Claimed => "claimed",
        }
    }

    pub fn concerns(self, tool: Tool) -> bool {
        self != Self::FileChanged || tool == Tool::Edit
    }

    /// Whether the approver must have seen the request.
    pub fn reaches_approver(self) -> bool {
        match self {
            Self::GatewayDown | Self::ProfileMissing | Self::Claimed | Self::DiskFull => false,
            Self::Approved
            | Self::Rejected
            | Self::Undecided
            | Self::FileChanged
            | Self::HookKilled
            | Self::AllKilled
            | Self::Suspended
            | Self::Altered => true,
        }
    }

    /// The text that the model must have been told, where the hook can tell it anything.
    pub fn told(self) -> Option<&'static str> {
        match self {
            Self::Rejected => Some(REASON),
            Self::Undecided => Some("without a decision"),
            Self::FileChanged => Some("changed after the approver saw the edit"),
            Self::GatewayDown => Some("cannot be reached"),
            Self::ProfileMissing => Some("there is no profile"),
            Self::Altered => Some("the decision is not trusted"),
            Self::Claimed => Some("not what was expected"),
            // Whichever clock is looked at first.
            Self::Suspended => Some("decision"),
            Self::Approved | Self::HookKilled | Self::AllKilled | Self::DiskFull => None,
        }
    }

    /// The hook's own deadline, in seconds.
    pub fn deadline(self) -> u64 {
        match self {
            Self::Undecided | Self::GatewayDown | Self::Claimed => 4,
            Self::Suspended => 8,
            _ => 60,
        }
    }
}

/// Where an agent goes on although the hook did not allow it, in the words of `doctor`.
const HOLES: [(Agent, Case, &str); 2] = [
    (Agent::Codex, Case::AllKilled, SHELL_KILLED),
    (Agent::Gemini, Case::AllKilled, SHELL_KILLED),
];
const SHELL_KILLED: &str = "if the shell around the hook is killed, the call goes ahead";

pub fn hole(agent: Agent, case: Case) -> Option<&'static str> {
    let known = HOLES.iter().find(|hole| (hole.0, hole.1) == (agent, case));
    known.map(|hole| hole.2)
}

pub fn holes(agent: Agent) -> impl Iterator<Item = &'static str> {
    let known = HOLES.iter().filter(move |hole| hole.0 == agent);
    known.map(|hole| hole.2)
}

pub fn list() {
    for case in Case::ALL {
        println!("{}", case.as_str());
    }
    for (agent, case, hole) in HOLES {
        println!("known hole of {agent}, {}: {hole}", case.as_str());
    }
}
