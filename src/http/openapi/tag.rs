//! What calls are grouped by.

/// What belongs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Submissions, decisions, and what becomes of them.
    Exchanges,
    /// What waits for approvers.
    Inbox,
    /// Live channels.
    Push,
    /// Pairing by code.
    Pairing,
    /// Prompts to agents.
    Prompts,
    /// What agents report.
    Sessions,
    /// Who is there.
    Presence,
    /// Tenants, credentials, keys, listings.
    Administration,
    /// The gateway itself.
    Gateway,
}

impl Tag {
    /// Every tag, in the order of the document.
    pub const ALL: [Self; 9] = [
        Self::Exchanges,
        Self::Inbox,
        Self::Push,
        Self::Pairing,
        Self::Prompts,
        Self::Sessions,
        Self::Presence,
        Self::Administration,
        Self::Gateway,
    ];

    /// Its name, and a sentence.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Exchanges => (
                "Exchanges",
                "An artifact is submitted, decided once, delivered, acknowledged.",
            ),
            Self::Inbox => ("Inbox", "What waits for an approver."),
            Self::Push => (
                "Push",
                "Live channels; /docs describes the messages they carry.",
            ),
            Self::Pairing => (
                "Pairing",
                "An enforcer shows a code, an approver types it and agrees.",
            ),
            Self::Prompts => (
                "Prompts",
                "What approvers and administrators send to agents.",
            ),
            Self::Sessions => ("Sessions", "What agents report of themselves."),
            Self::Presence => ("Presence", "Which enforcers are there."),
            Self::Administration => (
                "Administration",
                "Tenants, credentials, signing keys, listings and the audit.",
            ),
            Self::Gateway => ("Gateway", "What the gateway is, and how it is."),
        }
    }
}
