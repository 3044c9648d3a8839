//! Reads the bytes of an HTTP/1 connection before the protocol library does, and makes it refuse
//! what a proxy in front may read differently: a line that ends without CR, a transfer encoding
//! other than `chunked`, and two statements of one body's length. The library takes all of them,
//! and has no setting against it.

/// As much of a line as tells how long the body is: a name, blanks, and the longest number.
const LINE_BYTES: usize = 64;
/// Replaces a byte that must not be there. Outside of bodies the library answers 400 to it.
const POISON: u8 = 0;

/// The part of a request that the next byte belongs to.
#[derive(Debug, Clone, Copy)]
enum RequestPart {
    Head,
    /// So many bytes are left of a body, or of a chunk.
    Body(u64),
    Chunk(u64),
    /// After the bytes of a chunk.
    ChunkEnd,
    /// The line with a chunk's size, as far as it was read; `None` before its first digit.
    ChunkSize(Option<u64>),
    /// The rest of that line, after the size.
    ChunkExtension(u64),
    Trailer,
    /// The library refuses the request as well.
    Refused,
    /// The connection speaks another protocol now.
    Upgraded,
}

/// How long the head says the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyLength {
    Unsaid,
    Bytes(u64),
    Chunked,
}

/// Follows the requests of one connection.
pub struct RequestScanner {
    part: RequestPart,
    body: BodyLength,
    line: [u8; LINE_BYTES],
    /// Of the line, however long it is. Its CR is not counted.
    length: usize,
    /// Whether the last byte was a CR.
    cr: bool,
    /// Whether the head has its first line.
    begun: bool,
    /// Whether the library was given the end of a refused request.
    ended: bool,
}

impl Default for RequestScanner {
    fn default() -> Self {
        Self {
            part: RequestPart::Head,
            body: BodyLength::Unsaid,
            line: [0; LINE_BYTES],
            length: 0,
            cr: false,
            begun: false,
            ended: false,
        }
    }
}

impl RequestScanner {
    /// Follows these bytes, and overwrites what must be refused.
    pub fn read(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            if let RequestPart::Upgraded = self.part {
                return;
            }
            let done = self.step(bytes);
            bytes = bytes.get_mut(done..).unwrap_or_default();
        }
    }

    /// The bytes are another protocol's from here on.
    pub fn stop(&mut self) {
        self.part = RequestPart::Upgraded;
    }

    /// Replaces the rest of a refused request: an end, because the library would wait for one.
    pub fn rest_of_refused(&mut self) -> Option<&'static [u8]> {
        if !matches!(self.part, RequestPart::Refused) {
            return None;
        }
        let ended = std::mem::replace(&mut self.ended, true);
        Some(if ended { b"" } else { b"\r\n\r\n" })
    }

    /// Follows one byte, or as many as belong to a body. Returns how many.
    fn step(&mut self, bytes: &mut [u8]) -> usize {
        let count = bytes.len();
        let Some(byte) = bytes.first_mut() else {
            return 0;
        };
        match self.part {
            RequestPart::Body(left) | RequestPart::Chunk(left) => {
                let done = usize::try_from(left).unwrap_or(count).min(count);
                self.part = match (self.part, left - done as u64) {
                    (RequestPart::Body(_), 0) => RequestPart::Head,
                    (RequestPart::Body(_), left) => RequestPart::Body(left),
                    (_, 0) => RequestPart::ChunkEnd,
                    (_, left) => RequestPart::Chunk(left),
                };
                return done;
            }
            RequestPart::Head | RequestPart::Trailer => self.line_byte(byte),
            RequestPart::ChunkEnd => match (self.cr, *byte) {
                (false, b'\r') => self.cr = true,
                (true, b'\n') => {
                    self.cr = false;
                    self.part = RequestPart::ChunkSize(None);
                }
                _ => self.part = RequestPart::Refused,
            },
            RequestPart::ChunkSize(size) => self.size_byte(size, *byte),
            RequestPart::ChunkExtension(size) => match (self.cr, *byte) {
                (false, b'\r') => self.cr = true,
                (true, b'\n') => self.begin_chunk(size),
                (false, other) if other != b'\n' => {}
                _ => self.part = RequestPart::Refused,
            },
            RequestPart::Refused => *byte = POISON,
            RequestPart::Upgraded => {}
        }
        1
    }

    fn size_byte(&mut self, size: Option<u64>, byte: u8) {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        self.part = match (size, digit, byte) {
            (_, Some(digit), _) => {
                let size = size.unwrap_or(0).checked_mul(16);
                size.map_or(RequestPart::Refused, |size| {
                    RequestPart::ChunkSize(Some(size | digit))
                })
            }
            (Some(size), None, b'\r') => {
                self.cr = true;
                RequestPart::ChunkExtension(size)
            }
            (Some(size), None, b';' | b' ' | b'\t') => RequestPart::ChunkExtension(size),
            _ => RequestPart::Refused,
        };
    }

    fn begin_chunk(&mut self, size: u64) {
        self.cr = false;
        self.part = match size {
            0 => RequestPart::Trailer,
            size => RequestPart::Chunk(size),
        };
    }

    /// Follows a byte of a head or a trailer.
    fn line_byte(&mut self, byte: &mut u8) {
        let after_cr = std::mem::replace(&mut self.cr, *byte == b'\r');
        match *byte {
            b'\n' if after_cr => {
                if !self.end_line() {
                    self.refuse(byte);
                }
                self.length = 0;
            }
            // A line without CR, or a CR within one.
            b'\n' => self.refuse(byte),
            _ if after_cr => self.refuse(byte),
            b'\r' => {}
            other => {
                if let Some(slot) = self.line.get_mut(self.length) {
                    *slot = other;
                }
                self.length = self.length.saturating_add(1);
            }
        }
    }

    fn refuse(&mut self, byte: &mut u8) {
        *byte = POISON;
        self.part = RequestPart::Refused;
    }

    /// False if the line must be refused.
    fn end_line(&mut self) -> bool {
        match (self.part, self.length, self.begun) {
            (RequestPart::Trailer, 0, _) => self.part = RequestPart::Head,
            // The library skips empty lines before a request.
            (RequestPart::Trailer, ..) | (_, 0, false) => {}
            (_, 0, true) => {
                self.begun = false;
                self.part = match std::mem::replace(&mut self.body, BodyLength::Unsaid) {
                    BodyLength::Unsaid | BodyLength::Bytes(0) => RequestPart::Head,
                    BodyLength::Bytes(bytes) => RequestPart::Body(bytes),
                    BodyLength::Chunked => RequestPart::ChunkSize(None),
                };
            }
            (.., false) => self.begun = true,
            (.., true) => return self.header(),
        }
        true
    }

    /// Reads the header in the line. False if it must be refused.
    fn header(&mut self) -> bool {
        let line = self.line.get(..self.length.min(LINE_BYTES));
        let line = line.unwrap_or_default();
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
            return true;
        };
        let value = value.trim_ascii();
        let said = if name.eq_ignore_ascii_case(b"content-length") {
            let value = std::str::from_utf8(value).ok();
            let digits = value.filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
            digits
                .and_then(|digits| digits.parse().ok())
                .map(BodyLength::Bytes)
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            value
                .eq_ignore_ascii_case(b"chunked")
                .then_some(BodyLength::Chunked)
        } else {
            return true;
        };
        let first = self.body == BodyLength::Unsaid && self.length <= LINE_BYTES;
        match said {
            Some(said) if first => self.body = said,
            _ => return false,
        }
        true
    }
}
