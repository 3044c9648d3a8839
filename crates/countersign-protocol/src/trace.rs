//! W3C trace contexts, in headers and in the `trace` of Envelopes. A malformed context is ignored,
//! never refused.

use super::{hex, json};

/// Longest `tracestate` that is propagated; a longer one is dropped, as the recommendation allows.
const MAX_STATE: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub sampled: bool,
    pub state: Option<String>,
}

fn state(text: &str) -> Option<String> {
    let good = !text.is_empty() && text.len() <= MAX_STATE;
    let good = good && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    good.then(|| text.to_owned())
}

impl TraceContext {
    pub fn parse(parent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = parent.splitn(5, '-');
        let mut next = || parts.next();
        let (version, trace_id, span_id, flags) = (next()?, next()?, next()?, next()?);
        let [version] = hex::decode(version)?;
        let more = next().is_some();
        // Version 255 is invalid. Later versions may have more fields, version 0 may not.
        if version == 0xff || (version == 0 && more) {
            return None;
        }
        let (trace_id, span_id) = (hex::decode(trace_id)?, hex::decode(span_id)?);
        let [flags] = hex::decode(flags)?;
        if trace_id == [0; 16] || span_id == [0; 8] {
            return None;
        }
        Some(Self {
            trace_id,
            span_id,
            sampled: flags & 1 == 1,
            state: tracestate.and_then(state),
        })
    }

    /// The context in an Envelope's `trace`.
    pub fn of_trace(trace: &str) -> Option<Self> {
        let document = json::parse(trace.as_bytes()).ok()?;
        let object = document.as_object()?;
        let text = |name| object.get(name)?.as_str();
        Self::parse(text("traceparent")?, text("tracestate"))
    }

    pub fn trace_text(&self) -> String {
        hex::encode(&self.trace_id)
    }

    pub fn span_text(&self) -> String {
        hex::encode(&self.span_id)
    }

    pub fn traceparent(&self) -> String {
        let flags = u8::from(self.sampled);
        format!("00-{}-{}-{flags:02x}", self.trace_text(), self.span_text())
    }

    /// An Envelope's `trace` with this context added, unless it has one already. The rest of its
    /// text stays as it is.
    pub fn carried_by(&self, trace: Option<String>) -> String {
        let mut members = format!("\"traceparent\":\"{}\"", self.traceparent());
        if let Some(state) = &self.state {
            let quoted = serde_json::Value::from(state.as_str()).to_string();
            members.extend([",\"tracestate\":", &quoted]);
        }
        let Some(trace) = trace else {
            return format!("{{{members}}}");
        };
        let document = json::parse(trace.as_bytes()).ok();
        let object = document.as_ref().and_then(|document| document.as_object());
        let has_own = object.is_none_or(|object| {
            object.get("traceparent").is_some() || object.get("tracestate").is_some()
        });
        match trace.strip_prefix('{') {
            Some(rest) if !has_own => {
                let empty = object.is_some_and(json::JsonObject::is_empty);
                let comma = if empty { "" } else { "," };
                format!("{{{members}{comma}{rest}")
            }
            _ => trace,
        }
    }
}
