//! Asks several people and waits, with one line of progress. A signal withdraws the requests.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use countersign::client::enforcer::{AcceptedSet, ApprovalDenial, ApprovalRequest, Enforcer};
use countersign::e2e::{Receipt, RuleTerms};
use tokio::time::{Instant, interval};

use super::interruption::{AskInterruption, say_receipt_problem, say_trouble};
use crate::commands::output::save;
use crate::commands::signals::signals;
use crate::commands::terminal::{TerminalScreen, minutes};

/// The rule of a set.
pub(super) struct SetDemand {
    pub(super) terms: RuleTerms,
    /// How long it stays open, also without this command.
    pub(super) park: Option<Duration>,
    pub(super) wants_receipt: bool,
}

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
        let Some(file) = file else { return };
        let Some(receipt) = &self.receipt else {
            let why = match &self.decided {
                Err(AskInterruption::ByDenial(ApprovalDenial::Parked { .. })) => {
                    "there is no receipt yet: the requests stay open"
                }
                _ => "there is no receipt, because no decision counts",
            };
            screen.say(&format!("countersign: {why}"));
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
    demand: SetDemand,
    screen: &mut TerminalScreen,
) -> anyhow::Result<SetResult> {
    let stopped = signals()?;
    tokio::pin!(stopped);
    let trouble = enforcer.client().trouble();
    let preparing = say_trouble(
        screen,
        trouble.clone(),
        enforcer.open_set(request, demand.terms, demand.park),
    );
    let prepared = tokio::select! {
        prepared = preparing => prepared,
        code = &mut stopped => return Ok(SetResult::interrupted(AskInterruption::BySignal(code))),
    };
    let mut pending = match prepared {
        Ok(pending) => pending,
        Err(denial) => return Ok(SetResult::interrupted(AskInterruption::ByDenial(denial))),
    };
    let until = pending.until();
    let needed = RefCell::new(String::new());
    let mut decided = {
        let report = |text| drop(needed.replace(text));
        let mut deciding = Box::pin(pending.decision_if(report, async || Ok(())));
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
                "countersign: waiting for {}, {left} left{trouble}",
                needed.borrow()
            ));
        }
    };
    screen.clear();
    if let Err(AskInterruption::BySignal(_)) = decided {
        // A second signal ends it at once.
        stopped.set(signals()?);
        tokio::select! {
            () = pending.interrupt() => screen.say("countersign: withdrawn"),
            code = &mut stopped => {
                return Ok(SetResult::interrupted(AskInterruption::BySignal(code)));
            }
        }
    }
    let mut receipt = None;
    if demand.wants_receipt {
        tokio::select! {
            made = pending.receipt() => match made {
                Ok(made) => receipt = made,
                Err(error) => screen.say(&format!("countersign: {error}")),
            },
            code = &mut stopped => decided = Err(AskInterruption::BySignal(code)),
        }
    }
    // The gateway may have taken its time.
    if decided.is_ok()
        && let Err(denial) = pending.still_counts()
    {
        decided = Err(AskInterruption::ByDenial(denial));
    }
    drop(pending);
    say_receipt_problem(enforcer, screen);
    Ok(SetResult { decided, receipt })
}
