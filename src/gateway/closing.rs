//! Why the gateway closes channels.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelCloseReason {
    Drain,
    Credential,
    /// The identity has too many channels; this was its oldest.
    Replaced,
    LeaseLost,
    /// The peer does not read fast enough. It may reconnect and catch up.
    Slow,
    /// The peer does not respond.
    Silent,
    /// The peer began a message and did not finish it.
    Unfinished,
    /// The node has no memory for the peer's message. It may reconnect and send it again.
    Full,
    /// The peer's message exceeds the limit.
    TooBig,
}

impl ChannelCloseReason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Credential => "credential",
            Self::Replaced => "replaced",
            Self::LeaseLost => "lease_lost",
            Self::Slow => "slow",
            Self::Silent => "silent",
            Self::Unfinished => "unfinished",
            Self::Full => "full",
            Self::TooBig => "too_big",
        }
    }
}
