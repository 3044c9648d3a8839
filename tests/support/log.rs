//! The log of nodes of this process, kept for a test to read. The test runs on one thread, so that
//! the subscriber of that thread gets all of it.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

/// Log lines, kept.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

/// Keeps what is logged, for as long as it lives.
pub struct Log {
    lines: Lines,
    _guard: DefaultGuard,
    _second: tracing::Dispatch,
}

impl Log {
    /// Starts to keep what this filter lets through.
    pub fn keep(filter: &str) -> Self {
        let lines = Lines::default();
        let filter: Targets = filter.parse().expect("a filter");
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_ansi(false)
            .with_writer(lines.clone())
            .finish()
            .with(filter);
        // Where there is only one, a line first reached by another test's thread would be off for
        // good.
        let second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
            _second: second,
        }
    }

    /// All of it.
    pub fn text(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
