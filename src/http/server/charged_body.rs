//! A body whose bytes hold their memory: they outlive the body in the connection's buffers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::memory::MemoryCharge;

pub struct ChargedBody {
    body: Body,
    charge: Arc<MemoryCharge>,
}

impl ChargedBody {
    pub fn new(body: Body, charge: MemoryCharge) -> Self {
        Self {
            body,
            charge: Arc::new(charge),
        }
    }
}

/// Bytes with what is held for them, released together.
pub struct HeldBytes<B, H> {
    bytes: B,
    _held: H,
}

impl<B, H> HeldBytes<B, H> {
    pub fn new(bytes: B, held: H) -> Self {
        Self { bytes, _held: held }
    }
}

impl<B: AsRef<[u8]>, H> AsRef<[u8]> for HeldBytes<B, H> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl HttpBody for ChargedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let held = |bytes| {
            let charge = Arc::clone(&self.charge);
            Bytes::from_owner(HeldBytes::new(bytes, charge))
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(held))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
