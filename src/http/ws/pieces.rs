//! Large frames, read as if they had been sent in pieces. The socket's library makes room for a whole frame at once and keeps
//! that room for as long as the socket lives; a message in pieces it gathers elsewhere, and lets go.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Payload of a piece. A multiple of four, so that each begins where the frame's mask does.
const PIECE: usize = 4 << 10;
/// Longest head of a frame: two bytes, eight of length, four of mask.
const HEAD: usize = 14;
/// The first byte's bit that says that a message ends with this frame.
const FINAL: u8 = 0x80;
/// Its bit that tells control frames from data.
const CONTROL: u8 = 0x08;
/// The second byte's bit that says that there is a mask.
const MASKED: u8 = 0x80;
/// Its length where the real one follows in two bytes.
const LONG: u8 = 126;
/// Its length where the real one follows in eight.
const LONGER: u8 = 127;

/// A stream of a client's frames, none of them larger than a piece unless it is too large anyway.
pub struct Pieces<S> {
    stream: S,
    /// Largest frame that is cut; larger ones go on as they are, to be refused.
    most: u64,
    /// A head that is not whole yet, or that is to be handed on.
    head: Head,
    /// Payload until the next head.
    left: u64,
    rest: Option<Rest>,
}

/// What is left of a large frame after the piece under way.
struct Rest {
    bytes: u64,
    last: bool,
    mask: [u8; 4],
}

/// A frame's head, or a part of it.
struct Head {
    bytes: [u8; HEAD],
    length: u8,
    handed: Option<u8>,
}

impl Head {
    const NONE: Self = Self {
        bytes: [0; HEAD],
        length: 0,
        handed: None,
    };

    fn part(bytes: &[u8]) -> Self {
        let mut head = Self::NONE;
        head.bytes[..bytes.len()].copy_from_slice(bytes);
        head.length = u8::try_from(bytes.len()).unwrap_or_default();
        head
    }

    fn masked(first: u8, payload: u64, mask: [u8; 4]) -> Self {
        let mut head = Self::NONE;
        head.bytes[0] = first;
        let at = if let Ok(length @ ..LONG) = u8::try_from(payload) {
            head.bytes[1] = MASKED | length;
            2
        } else {
            let length = u16::try_from(payload).unwrap_or(u16::MAX);
            head.bytes[1] = MASKED | LONG;
            head.bytes[2..4].copy_from_slice(&length.to_be_bytes());
            4
        };
        head.bytes[at..at + 4].copy_from_slice(&mask);
        head.length = if at == 2 { 6 } else { 8 };
        head.handed = Some(0);
        head
    }
}

/// How long the head is that begins with these bytes, as far as they tell.
fn head_length(bytes: &[u8]) -> usize {
    let Some(second) = bytes.get(1) else {
        return 2;
    };
    let length = match second & !MASKED {
        LONG => 4,
        LONGER => 10,
        _ => 2,
    };
    length + if second & MASKED == 0 { 0 } else { 4 }
}

/// The length of the payload after a whole head.
fn payload_length(head: &[u8]) -> u64 {
    let long = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |length, byte| length << 8 | u64::from(*byte))
    };
    match head[1] & !MASKED {
        LONG => long(&head[2..4]),
        LONGER => long(&head[2..10]),
        short => short.into(),
    }
}

impl<S> Pieces<S> {
    /// Frames of up to `most` bytes come in pieces.
    pub fn new(stream: S, most: usize) -> Self {
        Self {
            stream,
            most: most as u64,
            head: Head::NONE,
            left: 0,
            rest: None,
        }
    }

    /// Begins the frame with this head. If it is large, its first piece, whose head is then another.
    fn begin(&mut self, head: &[u8]) -> Option<Head> {
        let payload = payload_length(head);
        let (first, piece) = (head[0], PIECE as u64);
        let (masked, control) = (head[1] & MASKED != 0, first & CONTROL != 0);
        if !masked || control || payload <= piece || payload > self.most {
            self.left = payload;
            return None;
        }
        let mut mask = [0; 4];
        mask.copy_from_slice(&head[head.len() - 4..]);
        self.left = piece;
        self.rest = Some(Rest {
            bytes: payload - piece,
            last: first & FINAL != 0,
            mask,
        });
        Some(Head::masked(first & !FINAL, piece, mask))
    }

    /// Begins the next piece of a large frame, where one ended.
    fn go_on(&mut self) {
        let Some(rest) = self.rest.take_if(|_| self.left == 0) else {
            return;
        };
        self.left = rest.bytes.min(PIECE as u64);
        let bytes = rest.bytes - self.left;
        let first = if bytes == 0 && rest.last { FINAL } else { 0 };
        self.head = Head::masked(first, self.left, rest.mask);
        self.rest = (bytes > 0).then_some(Rest { bytes, ..rest });
    }

    /// Goes through bytes that were read, and tells how many are to be handed on.
    fn cut(&mut self, bytes: &mut [u8]) -> usize {
        let (mut at, mut end) = (0, bytes.len());
        loop {
            let payload = usize::try_from(self.left).unwrap_or(usize::MAX);
            let payload = payload.min(end - at);
            at += payload;
            self.left -= payload as u64;
            if at == end {
                return end;
            }
            let length = head_length(&bytes[at..end]);
            if length > end - at {
                self.head = Head::part(&bytes[at..end]);
                return at;
            }
            // A piece's head is never longer than that of the frame it is cut from.
            if let Some(head) = self.begin(&bytes[at..at + length]) {
                let shorter = usize::from(head.length);
                bytes[at..at + shorter].copy_from_slice(&head.bytes[..shorter]);
                bytes.copy_within(at + length..end, at + shorter);
                end -= length - shorter;
                at += shorter;
            } else {
                at += length;
            }
        }
    }
}

impl<S: AsyncRead + Unpin> Pieces<S> {
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let have = usize::from(self.head.length);
            let want = head_length(&self.head.bytes[..have]);
            if want <= have {
                let head = self.head.bytes;
                match self.begin(&head[..have]) {
                    Some(cut) => self.head = cut,
                    None => self.head.handed = Some(0),
                }
                return Poll::Ready(Ok(()));
            }
            let mut more = ReadBuf::new(&mut self.head.bytes[have..want]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut more))?;
            let read = more.filled().len();
            if read == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.head.length += u8::try_from(read).unwrap_or_default();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Pieces<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if let Some(handed) = this.head.handed {
                let head = &this.head.bytes[usize::from(handed)..usize::from(this.head.length)];
                let count = head.len().min(buffer.remaining());
                buffer.put_slice(&head[..count]);
                let handed = handed + u8::try_from(count).unwrap_or_default();
                this.head.handed = Some(handed);
                if handed == this.head.length {
                    this.head = Head::NONE;
                }
                return Poll::Ready(Ok(()));
            }
            if this.head.length > 0 {
                ready!(this.poll_head(cx))?;
                continue;
            }
            if this.rest.is_some() && this.left == 0 {
                this.go_on();
                continue;
            }
            // Not beyond the piece under way, nor so much that one could begin and end within what is read.
            let most = match &this.rest {
                Some(_) => usize::try_from(this.left).unwrap_or(PIECE).min(PIECE),
                None => PIECE,
            };
            let space = buffer.initialize_unfilled();
            let most = most.min(space.len());
            let mut window = ReadBuf::new(&mut space[..most]);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut window))?;
            let read = window.filled().len();
            let kept = this.cut(&mut space[..read]);
            buffer.advance(kept);
            if kept > 0 || read == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Pieces<S> {
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
