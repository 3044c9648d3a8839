//! Why the gateway closes channels.

use crate::protocol::words::words;

words! {
    ChannelCloseReason {
        Drain = "drain",
        Credential = "credential",
        /// The identity has too many channels; this was its oldest.
        Replaced = "replaced",
        LeaseLost = "lease_lost",
        /// The peer does not read fast enough. It may reconnect and catch up.
        Slow = "slow",
        /// The peer does not respond.
        Silent = "silent",
        /// The peer began a message and did not finish it.
        Unfinished = "unfinished",
        /// The node has no memory for the peer's message. It may reconnect and send it again.
        Full = "full",
        /// The peer's message exceeds the limit.
        TooBig = "too_big",
    }
}
