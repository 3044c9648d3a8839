//! The rules of channels, in words, with the numbers of this node.

use super::Context;
use crate::http::ws::SUBPROTOCOL;

/// How a WebSocket is closed by the gateway: code, why, and what to do then.
pub const CLOSE_CODES: [(u16, &str, &str); 4] = [
    (
        1001,
        "the node is stopping, lost its lease, or heard nothing for too long",
        "reconnect, to any node",
    ),
    (
        1008,
        "the credential has ended, the identity has too many channels and this was the oldest, or a message took too long",
        "reconnect with a good credential, and with fewer channels",
    ),
    (1009, "a frame is too big", "send less"),
    (
        1013,
        "what was sent was not taken in time, or the node has no room for a message",
        "reconnect, catch up, and send again what was not answered",
    ),
];

/// Rules, by title.
pub fn rules(context: &Context<'_>) -> Vec<(&'static str, Vec<String>)> {
    let (push, limits) = (&context.config.push, &context.config.limits);
    vec![
        (
            "Connecting",
            vec![
                "GET /v1/sse/approvers/{approverId} and GET /v1/sse/enforcers/{enforcerId} are event streams; GET \
                 /v1/ws?role=&id= is a WebSocket. The credential comes with the request, as with any other call. EventSource \
                 cannot send headers: a browser reads an event stream with fetch."
                    .to_owned(),
                format!(
                    "On a WebSocket a browser offers the subprotocols {SUBPROTOCOL} and bearer.<key>; {SUBPROTOCOL} is what \
                     is chosen. An Origin that is present must be listed in server.origins, else 403."
                ),
                format!(
                    "An identity may have {} channels on a node; past that its oldest is closed.",
                    limits.channels_per_identity
                ),
            ],
        ),
        (
            "Order and redelivery",
            vec![
                "A channel first sends what is unacknowledged, oldest first, then whatever comes, on whichever node it \
                 arises. Within an exchange, first sends are in order. Nothing unacknowledged is ever lost; a message may \
                 come more than once: drop repeats by msgId, and acknowledge them again."
                    .to_owned(),
                format!(
                    "What is not acknowledged is offered again after {} s, then after pauses that double up to {} s.",
                    push.reoffer_seconds, push.reoffer_max_seconds
                ),
            ],
        ),
        (
            "Event streams",
            vec![
                "Each event has the message's msgId as id, its msgType as event, and the Envelope as data. The first line \
                 says how soon to come back. A raw carriage return between tokens arrives as a line feed; nothing else differs from \
                 what was submitted. Acknowledge over REST."
                    .to_owned(),
                format!(
                    "A ping comes every {} s or so: an event of type ping, without id and with empty data.",
                    push.sse_ping_seconds
                ),
                "On an approver's stream, Last-Event-ID skips what is older than that event by more than 60 s; the rest \
                 comes again, and is dropped by msgId. On an enforcer's it skips nothing."
                    .to_owned(),
                "A stream that ends says nothing more: reconnect, with backoff, to any node.".to_owned(),
            ],
        ),
        (
            "WebSockets",
            vec![
                format!(
                    "A frame, text or binary, holds one Envelope in JSON. A frame from an enforcer may have {} bytes, from \
                     an approver {}.",
                    limits.artifact_bytes + limits.envelope_bytes,
                    limits.body_bytes
                ),
                "Frames are answered as REST would, in Envelopes with trace.inReplyTo = the frame's msgId; an error leaves \
                 the channel open. Answers may come after messages that were pushed meanwhile."
                    .to_owned(),
                format!(
                    "The gateway pings every {} s. A client that sends nothing for two pings, not even pongs, is sent no \
                     decisions until it does; after {} s of silence it is closed. A client that does not take a message \
                     within {} s is closed, and catches up when it is back.",
                    push.ping_seconds, push.idle_seconds, push.send_timeout_seconds
                ),
            ],
        ),
    ]
}
