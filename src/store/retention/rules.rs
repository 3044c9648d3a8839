//! The rules of retention: which rows are deleted, and after which period.

use sqlx::postgres::types::PgInterval;

use crate::protocol::cursor::PagePosition;
use crate::protocol::id::TenantId;

/// Rows per statement: few enough to hold no lock for long.
pub const BATCH: i64 = 500;
/// Rows per statement where each has some ten rows of its own, or may hold megabytes.
pub const LARGE_ROWS: i64 = 100;

/// Rows of all tenants that one statement deletes.
#[derive(Debug, Clone, Copy)]
pub enum GlobalRule {
    IdempotencyKeys,
    PairingSessions,
    PairingGuesses,
    Nonces,
    AskedApprovers,
    Revocations,
    Invitations,
    TeamConsents,
}

impl GlobalRule {
    pub const ALL: [Self; 8] = [
        Self::IdempotencyKeys,
        Self::PairingSessions,
        Self::PairingGuesses,
        Self::Nonces,
        Self::AskedApprovers,
        Self::Revocations,
        Self::Invitations,
        Self::TeamConsents,
    ];
}

/// Rows of one tenant. The last three keep the row and delete its payload.
#[derive(Debug, Clone, Copy)]
pub enum TenantRule {
    Exchanges,
    Sessions,
    Enforcers,
    Audit,
    Prompts,
    Pairings,
    Tokens,
    Snapshots,
    Artifacts,
    PromptTexts,
}

impl TenantRule {
    pub const ALL: [Self; 10] = [
        Self::Exchanges,
        Self::Sessions,
        Self::Enforcers,
        Self::Audit,
        Self::Prompts,
        Self::Pairings,
        Self::Tokens,
        Self::Snapshots,
        Self::Artifacts,
        Self::PromptTexts,
    ];

    pub fn period(self, periods: &RetentionPeriods) -> Option<PgInterval> {
        match self {
            Self::Exchanges => Some(periods.exchanges),
            Self::Sessions | Self::Enforcers => Some(periods.sessions),
            Self::Audit => Some(periods.audit),
            Self::Prompts => Some(periods.prompts),
            Self::Pairings | Self::Tokens => Some(periods.pairings),
            Self::Snapshots | Self::Artifacts | Self::PromptTexts => periods.payloads,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum RetentionRule<'t> {
    Global(GlobalRule),
    Tenant(&'t TenantId, TenantRule),
}

/// How long rows are kept; payloads as long as their row if `None`.
#[derive(Debug, Clone)]
pub struct RetentionPeriods {
    pub exchanges: PgInterval,
    pub prompts: PgInterval,
    pub sessions: PgInterval,
    pub audit: PgInterval,
    pub pairings: PgInterval,
    pub payloads: Option<PgInterval>,
    pub pairing_sessions: PgInterval,
    pub nonces: PgInterval,
    pub revocations: PgInterval,
    pub invitations: PgInterval,
}

/// The result of one statement.
#[derive(Debug, Default)]
pub struct DeletedBatch {
    pub rows: i64,
    /// Whether another statement may find more rows.
    pub more: bool,
    /// Where that statement continues, unless it starts again with the oldest row.
    pub last: Option<PagePosition>,
}

impl DeletedBatch {
    /// There may be more rows after a `full` batch.
    pub fn counted(rows: impl TryInto<i64>, full: i64) -> Self {
        let rows = rows.try_into().unwrap_or(i64::MAX);
        Self {
            rows,
            more: rows >= full,
            last: None,
        }
    }
}
