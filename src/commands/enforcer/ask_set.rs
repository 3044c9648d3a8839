//! Asks several people and waits, with one line of progress. A signal withdraws the requests.

use std::path::Path;
use std::time::Duration;

use countersign::client::enforcer::{AcceptedSet, ApprovalRequest, Enforcer};
use countersign::client::visible;
use countersign::e2e::{Receipt, RuleTerms};
use tokio::time::{Instant, interval};

use super::interruption::{AskInterruption, say_trouble};
use crate::commands::output::save;
use crate::commands::signals::signals;
use crate::commands::terminal::{TerminalScreen, minutes};

/// The result of a set. There is a receipt if somebody has decided.
pub(super) struct SetResult {
    pub(super) decided: Result<AcceptedSet, AskInterruption>,
    receipt: Option<Receipt>,
}

impl SetResult {
    fn interrupted(interruption: AskInterruption) -> Self {
        Self {
            decided: Err(interruption),
            receipt: None,
        }
    }

    /// Writes the receipt. The answer was given and signed before, so a failure is only told.
    pub(super) fn save(&self, file: Option<&Path>, screen: &mut TerminalScreen) {
        let (Some(file), Some(receipt)) = (file, &self.receipt) else {
            return;
        };
        let text = receipt.to_text().map_err(anyhow::Error::from);
        if let Err(error) = text.and_then(|text| save(file, &text)) {
            screen.say(&format!(
                "countersign: the receipt was not saved: {error:#}"
            ));
        }
    }
}

pub(super) async fn await_set(
    enforcer: &mut Enforcer,
    request: ApprovalRequest,
    terms: RuleTerms,
    screen: &mut TerminalScreen,
) -> anyhow::Result<SetResult> {
    let stopped = signals()?;
    tokio::pin!(stopped);
    let needed = terms.asks.iter().map(|ask| ask.approvals).max();
    let needed = needed.unwrap_or_default();
    let trouble = enforcer.client().trouble();
    let preparing = say_trouble(
        screen,
        trouble.clone(),
        enforcer.prepare_set(request, terms),
    );
    let prepared = tokio::select! {
        prepared = preparing => prepared,
        code = &mut stopped => return Ok(SetResult::interrupted(AskInterruption::BySignal(code))),
    };
    let mut pending = match prepared {
        Ok(pending) => pending,
        Err(denial) => return Ok(SetResult::interrupted(AskInterruption::ByDenial(denial))),
    };
    let asked: Vec<_> = pending.asked().map(|id| visible(id.as_str())).collect();
    let (asked, until) = (asked.join(", "), pending.until());
    let decided = {
        let deciding = pending.decision(|| {});
        tokio::pin!(deciding);
        let mut second = interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                decided = &mut deciding => break decided.map_err(AskInterruption::ByDenial),
                code = &mut stopped => break Err(AskInterruption::BySignal(code)),
                _ = second.tick() => {}
            }
            let trouble = trouble.borrow().clone();
            let trouble = trouble.map_or(String::new(), |trouble| format!(" ({trouble})"));
            let left = minutes(until.saturating_duration_since(Instant::now()));
            screen.progress(&format!(
                "countersign: waiting for {needed} of {asked}, {left} left{trouble}"
            ));
        }
    };
    screen.clear();
    if let Err(AskInterruption::BySignal(_)) = decided {
        pending.interrupt().await;
        screen.say("countersign: withdrawn");
    }
    let receipt = pending.receipt().await.unwrap_or_else(|error| {
        screen.say(&format!("countersign: there is no receipt: {error}"));
        None
    });
    Ok(SetResult { decided, receipt })
}
