//! Deletes rows that are past their retention period, in small batches. Rows that another
//! transaction has locked are left for the next run.

pub mod due;
mod exchange;
mod global;
pub(in crate::store) mod lease;
mod tenant;

use sqlx::postgres::types::PgInterval;

use super::Database;
use super::error::Result;
use crate::protocol::cursor::PagePosition;
use crate::protocol::id::TenantId;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::tenant_scope::TenantScope;

/// Rows per statement: few enough to hold no lock for long.
const BATCH: i64 = 500;
/// Rows per statement where each has some ten rows of its own, or may hold megabytes.
const LARGE_ROWS: i64 = 100;

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
}

impl GlobalRule {
    pub const ALL: [Self; 7] = [
        Self::IdempotencyKeys,
        Self::PairingSessions,
        Self::PairingGuesses,
        Self::Nonces,
        Self::AskedApprovers,
        Self::Revocations,
        Self::Invitations,
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

    fn period(self, periods: &RetentionPeriods) -> Option<PgInterval> {
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
    fn counted(rows: impl TryInto<i64>, full: i64) -> Self {
        let rows = rows.try_into().unwrap_or(i64::MAX);
        Self {
            rows,
            more: rows >= full,
            last: None,
        }
    }
}

impl Database {
    /// Deletes one batch of expired rows, the oldest first. `after` is `last` of the previous
    /// batch.
    pub async fn delete_expired(
        &self,
        rule: RetentionRule<'_>,
        periods: &RetentionPeriods,
        after: Option<&PagePosition>,
    ) -> Result<DeletedBatch> {
        match rule {
            RetentionRule::Global(rule) => {
                let query = global::statement(rule, clock_offset(&self.clock), periods);
                // All: the sweep serves every tenant.
                let scope = TenantScope::All;
                let rows = self.background.execute(scope, query).await?;
                Ok(DeletedBatch::counted(rows, BATCH))
            }
            RetentionRule::Tenant(tenant, rule) => match rule.period(periods) {
                Some(keep) => tenant::delete(self, rule, tenant, keep, after).await,
                None => Ok(DeletedBatch::default()),
            },
        }
    }
}
