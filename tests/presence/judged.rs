//! The rule itself, without a gateway around it.

use std::time::Duration;

use countersign::protocol::id::{EnforcerId, TextId as _};
use countersign::protocol::presence::{
    CallFacts, ChannelFacts, PresenceFacts, PresenceStatus, Transport, judge_presence,
};
use countersign::protocol::timestamp::Timestamp;

/// A time, in seconds before now.
fn ago(seconds: i64) -> Timestamp {
    let now = Timestamp::parse("2030-01-01T12:00:00Z").unwrap();
    Timestamp::from(now.inner() - time::Duration::seconds(seconds))
}

/// Judges an enforcer by the ages of its last call and close, in seconds, and by a channel: whether
/// it is live, and when it ended.
fn judge(
    called: Option<i64>,
    closed: Option<i64>,
    channel: Option<(bool, i64)>,
) -> (PresenceStatus, Transport) {
    let noted = called.or(closed).map(|_| CallFacts {
        transport: Transport::Poll,
        called_at: called.map(ago),
        closed_at: closed.map(ago),
        seen_at: called.into_iter().chain(closed).map(ago).max().unwrap(),
    });
    let facts = PresenceFacts {
        enforcer: EnforcerId::parse("build-bot").unwrap(),
        label: None,
        workspace_name: None,
        capabilities: None,
        noted,
        held: channel.map(|(live, ended)| ChannelFacts {
            live,
            transport: Transport::Sse,
            seen_at: ago(ended),
            ended_at: ago(ended),
        }),
        now: ago(0),
    };
    let record = judge_presence(facts, Duration::from_secs(600)).expect("a record");
    (record.status, record.transport)
}

#[test]
fn online_is_a_live_channel_or_a_recent_call_since_the_last_one_ended() {
    use PresenceStatus::{Offline, Online};
    use Transport::{Poll, Sse};
    for (called, closed, channel, expected) in [
        (None, None, Some((true, 9)), (Online, Sse)),
        (None, None, Some((false, 9)), (Offline, Sse)),
        (Some(5), None, Some((true, 9)), (Online, Sse)),
        (Some(5), None, None, (Online, Poll)),
        (Some(599), None, None, (Online, Poll)),
        (Some(600), None, None, (Offline, Poll)),
        (Some(601), None, None, (Offline, Poll)),
        (Some(5), Some(6), None, (Online, Poll)),
        (Some(6), Some(6), None, (Offline, Poll)),
        (Some(7), Some(6), None, (Offline, Poll)),
        (None, Some(6), None, (Offline, Poll)),
        (Some(5), Some(20), Some((false, 6)), (Online, Poll)),
        (Some(7), Some(20), Some((false, 6)), (Offline, Sse)),
        (Some(7), Some(5), Some((false, 6)), (Offline, Poll)),
    ] {
        assert_eq!(
            judge(called, closed, channel),
            expected,
            "called {called:?}, closed {closed:?}, channel {channel:?}"
        );
    }
}
