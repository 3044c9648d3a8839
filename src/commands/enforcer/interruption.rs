//! The end of a request without an approval, news of a gateway that does not answer, and a receipt
//! that was not saved.

use countersign::client::enforcer::{ApprovalDenial, Enforcer};
use tokio::sync::watch;

use crate::commands::terminal::TerminalScreen;

/// Why there is no approval.
pub(super) enum AskInterruption {
    ByDenial(ApprovalDenial),
    /// With the exit status.
    BySignal(u8),
}

/// Does `work`, and says once if the gateway does not answer meanwhile.
pub(super) async fn say_trouble<T>(
    screen: &mut TerminalScreen,
    mut trouble: watch::Receiver<Option<String>>,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    let text = tokio::select! {
        biased;
        done = &mut work => return done,
        text = trouble.wait_for(Option::is_some) => text.ok().and_then(|text| text.clone()),
    };
    if let Some(text) = text {
        screen.remark(&format!("countersign: {text}; trying again"));
    }
    work.await
}

pub(super) fn say_receipt_problem(enforcer: &mut Enforcer, screen: &mut TerminalScreen) {
    if let Some(problem) = enforcer.take_receipt_problem() {
        screen.say(&format!("countersign: {problem}"));
    }
}
