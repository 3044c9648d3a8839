//! Sizes, pages, waits, and rates.

use serde::{Deserialize, Serialize};

section! {
    /// `[limits]`: sizes, pages, waits.
    Limits {
        artifact_bytes: usize = 2 << 20,
        /// Memory for bodies and messages being read or processed, and for responses and pages of
        /// channels being sent, in total; each tenant and identity has a share of it. Beyond it
        /// they wait, then get 503, or 1013 over a WebSocket.
        body_memory_bytes: usize = 256 << 20,
        pending_per_approver: u32 = 10_000,
        /// Most channels of one identity on a node; the oldest is closed.
        channels_per_identity: usize = 50,
        channels_per_node: usize = 20_000,
        channels_per_tenant: usize = 15_000,
        wait_max_seconds: u64 = 60,
        page_max: u32 = 200,
        /// Payload bytes after which a page ends.
        page_bytes: u32 = 8 << 20,
    }
    constants {
        prompt_bytes: usize = 256 << 10,
        snapshot_bytes: usize = 5 << 20,
        /// Bytes that a submission may contain besides its payload.
        envelope_bytes: usize = 64 << 10,
        body_bytes: usize = 256 << 10,
        /// Most approvers that one submission may ask.
        approvers_per_exchange: u32 = 200,
        waits_per_identity: usize = 1_000,
        /// How far a client's clock may be ahead of ours.
        clock_skew_seconds: u64 = 60,
        /// Wait, when none is asked for.
        wait_default_seconds: u64 = 30,
        /// Items on a page, when no limit is asked for.
        page_default: u32 = 50,
    }
}

impl Limits {
    /// The largest answer: a page, which ends with the item that exceeds its limit, or a snapshot.
    pub fn largest_answer(&self) -> usize {
        let page = usize::try_from(self.page_bytes).unwrap_or(usize::MAX);
        let page = page.saturating_add(self.artifact_bytes);
        page.max(self.snapshot_bytes)
            .saturating_add(self.envelope_bytes)
    }

    /// Items on a page, when no limit is asked for.
    pub fn default_page(&self) -> u32 {
        self.page_default.min(self.page_max)
    }

    /// Seconds of a wait, when none are asked for.
    pub fn default_wait(&self) -> u64 {
        self.wait_default_seconds.min(self.wait_max_seconds)
    }

    /// How much of an approver's inbox one enforcer may fill: a flood leaves room for others.
    pub fn pending_per_enforcer(&self) -> u32 {
        (self.pending_per_approver / 10).max(1)
    }
}

section! {
    /// `[rates]`: calls per second that a node accepts from one caller: per credential and the id
    /// it acts as.
    Rates {
        enabled: bool = true,
        /// Artifacts, prompts, session events and new pairings.
        submissions: u32 = 50,
        /// Decisions, withdrawals, refreshes, removals, pairings completed or revoked,
        /// administration.
        decisions: u32 = 50,
        acks: u32 = 200,
        reads: u32 = 200,
        connects: u32 = 5,
        /// All calls from one address, before authentication.
        address: u32 = 100,
        /// KiB of bodies and messages larger than 64 KiB, per credential.
        body_kib: u32 = 16 << 10,
    }
    constants {
        submissions_burst: u32 = 100,
        decisions_burst: u32 = 100,
        acks_burst: u32 = 400,
        reads_burst: u32 = 400,
        connects_burst: u32 = 20,
        address_burst: u32 = 200,
        /// Tokens from one address that the authorization server refuses.
        refused_tokens: u32 = 10,
        refused_tokens_burst: u32 = 50,
        body_kib_burst: u32 = 128 << 10,
    }
}
