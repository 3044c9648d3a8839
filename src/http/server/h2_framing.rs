//! Follows the frames of an HTTP/2 connection before the protocol library reads them, which has no
//! limit of time for a frame that begins and does not end.

/// Length of the preface with which a peer opens HTTP/2. The protocol library verifies it.
pub const PREFACE_BYTES: usize = 24;
/// The header of a frame: the length of its payload, its type, flags, and its stream.
const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Follows the frames of one connection.
#[derive(Default)]
pub struct FrameScanner {
    preface_read: usize,
    header: [u8; HEADER_BYTES],
    /// How much of the header was read.
    length: usize,
    payload_left: usize,
    is_data: bool,
    /// Whether a block of headers goes on in the next frame.
    continues: bool,
    ended: u64,
}

impl FrameScanner {
    pub fn read(&mut self, mut bytes: &[u8]) {
        let skipped = (PREFACE_BYTES - self.preface_read).min(bytes.len());
        self.preface_read += skipped;
        bytes = bytes.get(skipped..).unwrap_or_default();
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.payload_left > 0 {
                let done = self.payload_left.min(bytes.len());
                self.payload_left -= done;
                bytes = bytes.get(done..).unwrap_or_default();
            } else {
                if let Some(slot) = self.header.get_mut(self.length) {
                    *slot = byte;
                }
                self.length += 1;
                bytes = rest;
                if self.length == HEADER_BYTES {
                    self.begin_payload();
                }
            }
            if self.unfinished().is_none() {
                self.ended += 1;
            }
        }
    }

    fn begin_payload(&mut self) {
        let [high, middle, low, kind, flags, ..] = self.header;
        self.length = 0;
        self.payload_left = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.is_data = kind == DATA;
        if kind == HEADERS || kind == CONTINUATION {
            self.continues = flags & END_HEADERS == 0;
        }
    }

    /// The number of the frame, or block of headers, that is unfinished. Bodies have own limits.
    pub fn unfinished(&self) -> Option<u64> {
        let payload = self.payload_left > 0 && !self.is_data;
        (self.length > 0 || payload || self.continues).then_some(self.ended)
    }
}
