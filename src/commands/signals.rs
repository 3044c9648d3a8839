//! Signals that end a command.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit status for the first Ctrl-C, SIGTERM, or closed terminal.
pub fn signals() -> std::io::Result<impl Future<Output = u8>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => 130,
            _ = terminate.recv() => 143,
            _ = hangup.recv() => 129,
        }
    })
}

/// Cancelled by the same signals.
pub fn stop_signals() -> std::io::Result<CancellationToken> {
    let signals = signals()?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        signals.await;
        told.cancel();
    });
    Ok(stop)
}
