//! Hints as nodes send them: a notification has a kind, the tag of its sender, and words.

use std::collections::HashSet;

use uuid::Uuid;

use super::copy_cipher::{CopyCipher, MessageCopy};
use crate::protocol::id::MessageId;

/// PostgreSQL's limit is 8,000.
const NOTIFICATION_BYTES: usize = 7_900;
/// The longest word, beside which kind and tag fit.
const WORD_BYTES: usize = NOTIFICATION_BYTES - 64;
/// Copies that are sent together. Further messages are only named.
const COPIES_BYTES: usize = 128 << 10;

/// News of a key, by its digest.
pub(super) struct WakeHint {
    pub digest: u64,
    pub news: HintNews,
    /// Whether it may wait for others to be sent with: no other node has asked about its key lately.
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

fn digest_word(digest: u64) -> String {
    format!("{digest:016x}")
}

pub(super) fn read_digest(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

/// The name of a message: the digest of its key, and its id.
fn message_word(digest: u64, message: MessageId) -> String {
    format!("{digest:016x}:{}", message.0.simple())
}

pub(super) fn read_message(word: &str) -> Option<(u64, MessageId)> {
    let (digest, message) = word.split_once(':')?;
    Some((
        read_digest(digest)?,
        MessageId(Uuid::try_parse(message).ok()?),
    ))
}

/// The notifications that say these hints. The order of hints does not matter: those who wait for a key that has changed read everything.
pub(super) fn notifications(tag: &str, cipher: &CopyCipher, hints: Vec<WakeHint>) -> Vec<String> {
    let digests_of = |is_one: fn(&HintNews) -> bool| -> HashSet<u64> {
        let hints = hints.iter().filter(|hint| is_one(&hint.news));
        hints.map(|hint| hint.digest).collect()
    };
    let changed = digests_of(|news| matches!(news, HintNews::Change));
    let demanded = digests_of(|news| matches!(news, HintNews::Demand));
    let (mut named, mut copies, mut copy_bytes) = (Vec::new(), Vec::new(), 0);
    for WakeHint { digest, news, .. } in hints {
        if changed.contains(&digest) {
            continue;
        }
        match news {
            HintNews::Message(message) => named.push(message_word(digest, message)),
            HintNews::Copy(copy) => {
                let name = message_word(digest, copy.message.id());
                let has_room = copy_bytes < COPIES_BYTES;
                let word = has_room.then(|| copy_word(cipher, &name, &copy)).flatten();
                copy_bytes += word.as_ref().map_or(0, String::len);
                match word {
                    Some(word) => copies.push(word),
                    None => named.push(name),
                }
            }
            HintNews::Change | HintNews::Demand => {}
        }
    }
    [
        pack("k", tag, changed.into_iter().map(digest_word)),
        pack("m", tag, named),
        pack("n", tag, copies),
        pack("w", tag, demanded.into_iter().map(digest_word)),
    ]
    .concat()
}

/// A copy behind the name of its message, if it fits into a notification.
fn copy_word(cipher: &CopyCipher, name: &str, copy: &MessageCopy) -> Option<String> {
    let copy = cipher.encrypt(name, copy)?;
    (name.len() + 1 + copy.len() <= WORD_BYTES).then(|| format!("{name}:{copy}"))
}

/// As few notifications of a kind as hold all words.
fn pack(kind: &str, tag: &str, words: impl IntoIterator<Item = String>) -> Vec<String> {
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
