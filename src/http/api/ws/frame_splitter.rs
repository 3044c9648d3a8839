//! Splits a client's large frames into fragments as they are read. By hand, because tungstenite
//! allocates a whole frame at once and keeps that buffer for the life of the socket; fragments it
//! collects in a message that it lets go.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Payload of a fragment. A multiple of four, so that the frame's mask fits unshifted.
const FRAGMENT: usize = 4 << 10;
/// Longest frame header: two bytes, eight of length, four of mask.
const HEADER: usize = 14;
/// In the first byte: the frame ends a message.
const FINAL: u8 = 0x80;
/// In the first byte: a control frame.
const CONTROL: u8 = 0x08;
/// In the second byte: the payload is masked.
const MASKED: u8 = 0x80;
/// Length that stands for two bytes of length that follow.
const LENGTH_16: u8 = 126;
/// Length that stands for eight bytes of length that follow.
const LENGTH_64: u8 = 127;

/// Reads frames of at most `FRAGMENT` bytes, unless they are over the limit anyway.
pub struct FrameSplitter<S> {
    stream: S,
    /// Frames over this limit pass unchanged, to be refused.
    limit: u64,
    /// A header that is incomplete, or that is to be emitted.
    header: FrameHeader,
    /// Payload before the next header.
    payload_left: u64,
    rest: Option<FrameRest>,
}

/// The rest of a large frame after the current fragment.
#[derive(Clone, Copy)]
struct FrameRest {
    bytes: u64,
    is_final: bool,
    mask: [u8; 4],
}

struct FrameHeader {
    bytes: [u8; HEADER],
    length: u8,
    /// How many bytes have been emitted, once the header is complete.
    emitted: Option<u8>,
}

impl FrameHeader {
    const EMPTY: Self = Self {
        bytes: [0; HEADER],
        length: 0,
        emitted: None,
    };

    fn incomplete(bytes: &[u8]) -> Self {
        let mut header = Self::EMPTY;
        header.bytes[..bytes.len()].copy_from_slice(bytes);
        header.length = u8::try_from(bytes.len()).unwrap_or_default();
        header
    }

    fn of_fragment(first: u8, payload: u64, mask: [u8; 4]) -> Self {
        let mut header = Self::EMPTY;
        header.bytes[0] = first;
        let at = if let Ok(length @ ..LENGTH_16) = u8::try_from(payload) {
            header.bytes[1] = MASKED | length;
            2
        } else {
            let length = u16::try_from(payload).unwrap_or(u16::MAX);
            header.bytes[1] = MASKED | LENGTH_16;
            header.bytes[2..4].copy_from_slice(&length.to_be_bytes());
            4
        };
        header.bytes[at..at + 4].copy_from_slice(&mask);
        header.length = if at == 2 { 6 } else { 8 };
        header.emitted = Some(0);
        header
    }
}

/// Length of the header that begins with these bytes, as far as they tell.
fn header_length(bytes: &[u8]) -> usize {
    let Some(second) = bytes.get(1) else {
        return 2;
    };
    let length = match second & !MASKED {
        LENGTH_16 => 4,
        LENGTH_64 => 10,
        _ => 2,
    };
    length + if second & MASKED == 0 { 0 } else { 4 }
}

/// Length of the payload after a complete header.
fn payload_length(header: &[u8]) -> u64 {
    let big_endian = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |length, byte| length << 8 | u64::from(*byte))
    };
    match header[1] & !MASKED {
        LENGTH_16 => big_endian(&header[2..4]),
        LENGTH_64 => big_endian(&header[2..10]),
        short => short.into(),
    }
}

impl<S> FrameSplitter<S> {
    pub fn new(stream: S, limit: usize) -> Self {
        Self {
            stream,
            limit: limit as u64,
            header: FrameHeader::EMPTY,
            payload_left: 0,
            rest: None,
        }
    }

    /// Begins the frame with this header. Of a large frame, returns that of its first fragment.
    fn begin_frame(&mut self, header: &[u8]) -> Option<FrameHeader> {
        let payload = payload_length(header);
        let (first, fragment) = (header[0], FRAGMENT as u64);
        let (masked, control) = (header[1] & MASKED != 0, first & CONTROL != 0);
        if !masked || control || payload <= fragment || payload > self.limit {
            self.payload_left = payload;
            return None;
        }
        let mut mask = [0; 4];
        mask.copy_from_slice(&header[header.len() - 4..]);
        self.payload_left = fragment;
        self.rest = Some(FrameRest {
            bytes: payload - fragment,
            is_final: first & FINAL != 0,
            mask,
        });
        Some(FrameHeader::of_fragment(first & !FINAL, fragment, mask))
    }

    /// Begins the next fragment of a large frame.
    fn begin_fragment(&mut self, rest: FrameRest) {
        self.payload_left = rest.bytes.min(FRAGMENT as u64);
        let bytes = rest.bytes - self.payload_left;
        let first = if bytes == 0 && rest.is_final {
            FINAL
        } else {
            0
        };
        self.header = FrameHeader::of_fragment(first, self.payload_left, rest.mask);
        self.rest = (bytes > 0).then_some(FrameRest { bytes, ..rest });
    }

    /// Rewrites headers in bytes that were read. Returns how many bytes are left to emit.
    fn split(&mut self, bytes: &mut [u8]) -> usize {
        let (mut at, mut end) = (0, bytes.len());
        loop {
            let payload = usize::try_from(self.payload_left).unwrap_or(usize::MAX);
            let payload = payload.min(end - at);
            at += payload;
            self.payload_left -= payload as u64;
            if at == end {
                return end;
            }
            let length = header_length(&bytes[at..end]);
            if length > end - at {
                self.header = FrameHeader::incomplete(&bytes[at..end]);
                return at;
            }
            // A fragment's header is never longer than that of its frame.
            if let Some(header) = self.begin_frame(&bytes[at..at + length]) {
                let shorter = usize::from(header.length);
                bytes[at..at + shorter].copy_from_slice(&header.bytes[..shorter]);
                bytes.copy_within(at + length..end, at + shorter);
                end -= length - shorter;
                at += shorter;
            } else {
                at += length;
            }
        }
    }
}

impl<S: AsyncRead + Unpin> FrameSplitter<S> {
    /// Reads the rest of an incomplete header.
    fn poll_header(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let have = usize::from(self.header.length);
            let want = header_length(&self.header.bytes[..have]);
            if want <= have {
                let header = self.header.bytes;
                match self.begin_frame(&header[..have]) {
                    Some(fragment) => self.header = fragment,
                    None => self.header.emitted = Some(0),
                }
                return Poll::Ready(Ok(()));
            }
            let mut more = ReadBuf::new(&mut self.header.bytes[have..want]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut more))?;
            let read = more.filled().len();
            if read == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.header.length += u8::try_from(read).unwrap_or_default();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameSplitter<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if let Some(emitted) = this.header.emitted {
                let length = this.header.length;
                let header = &this.header.bytes[usize::from(emitted)..usize::from(length)];
                let count = header.len().min(buffer.remaining());
                buffer.put_slice(&header[..count]);
                let emitted = emitted + u8::try_from(count).unwrap_or_default();
                this.header.emitted = Some(emitted);
                if emitted == length {
                    this.header = FrameHeader::EMPTY;
                }
                return Poll::Ready(Ok(()));
            }
            if this.header.length > 0 {
                ready!(this.poll_header(cx))?;
                continue;
            }
            if let Some(rest) = this.rest.take_if(|_| this.payload_left == 0) {
                this.begin_fragment(rest);
                continue;
            }
            // So little that no fragment begins and ends within one read.
            let limit = match &this.rest {
                Some(_) => usize::try_from(this.payload_left).unwrap_or(FRAGMENT),
                None => FRAGMENT,
            };
            let space = buffer.initialize_unfilled();
            let limit = limit.min(FRAGMENT).min(space.len());
            let mut window = ReadBuf::new(&mut space[..limit]);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut window))?;
            let read = window.filled().len();
            let emitted = this.split(&mut space[..read]);
            buffer.advance(emitted);
            if emitted > 0 || read == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FrameSplitter<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
