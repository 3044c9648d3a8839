//! Hints as nodes send them: a notification has a kind, the tag of its sender, and words.

use uuid::Uuid;

use super::copy_cipher::MessageCopy;
use crate::protocol::id::MessageId;

/// PostgreSQL's limit is 8,000.
const NOTIFICATION_BYTES: usize = 7_900;
/// The longest word, beside which kind and tag fit.
pub(super) const WORD_BYTES: usize = NOTIFICATION_BYTES - 64;

/// News of a key, by its digest.
pub(super) struct WakeHint {
    pub digest: u64,
    pub news: HintNews,
    /// Whether no other node has asked about its key lately.
    pub can_wait: bool,
}

pub(super) enum HintNews {
    Change,
    /// This message is new, and nothing else has changed.
    Message(MessageId),
    /// The same, with the message itself.
    Copy(Box<MessageCopy>),
    /// This node wants copies of the messages to come.
    Demand,
}

pub(super) fn digest_word(digest: u64) -> String {
    format!("{digest:016x}")
}

pub(super) fn read_digest(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

/// The name of a message: the digest of its key, and its id.
pub(super) fn message_word(digest: u64, message: MessageId) -> String {
    format!("{digest:016x}:{}", message.0.simple())
}

pub(super) fn read_message(word: &str) -> Option<(u64, MessageId)> {
    let (digest, message) = word.split_once(':')?;
    Some((
        read_digest(digest)?,
        MessageId(Uuid::try_parse(message).ok()?),
    ))
}

/// As few notifications of a kind as hold all words.
pub(super) fn pack(kind: &str, tag: &str, words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut packed: Vec<String> = Vec::new();
    for word in words {
        match packed.last_mut() {
            Some(last) if last.len() + 1 + word.len() <= NOTIFICATION_BYTES => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => packed.push(format!("{kind} {tag} {word}")),
        }
    }
    packed
}
