//! The plain model: what the contract says becomes of each call, in a few lines and without a
//! database.

use std::collections::BTreeMap;

/// Where an exchange of the model stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    Pending,
    Decided,
    Delivered,
    Withdrawn,
    Cancelled,
}

/// An exchange of the model.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub enforcer: usize,
    pub approver: usize,
    pub hash: usize,
    /// In model seconds.
    pub expires: u64,
    pub stand: Stand,
    /// Which decision was taken.
    pub decision: Option<usize>,
    pub removed: bool,
    /// Refreshes that were queued, and whether the last one still waits.
    pub refreshes: usize,
    pub refresh_waits: bool,
    /// The expected history, expiry aside.
    pub events: Vec<String>,
}

/// Everything the model knows.
#[derive(Debug, Default)]
pub struct Truth {
    pub now: u64,
    pub exchanges: BTreeMap<usize, Exchange>,
}

impl Truth {
    /// The word for an exchange's true state.
    pub fn state(&self, slot: usize) -> &'static str {
        let exchange = &self.exchanges[&slot];
        match exchange.stand {
            Stand::Pending if exchange.expires <= self.now => "expired",
            Stand::Pending => "pendingApproval",
            Stand::Decided => "decided",
            Stand::Delivered => "delivered",
            Stand::Withdrawn => "withdrawn",
            Stand::Cancelled => "cancelled",
        }
    }

    /// The slots whose items this approver finds, in this state, in the order they came in.
    pub fn shelf(&self, approver: usize, state: &str, order: &[usize]) -> Vec<usize> {
        let there = |slot: &usize| {
            let exchange = &self.exchanges[slot];
            exchange.approver == approver && !exchange.removed && self.state(*slot) == state
        };
        order.iter().copied().filter(there).collect()
    }

    pub fn submit(
        &mut self,
        slot: usize,
        enforcer: usize,
        approver: usize,
        hash: usize,
        life: Option<u64>,
    ) -> &'static str {
        match (self.exchanges.get(&slot), life) {
            (Some(found), _) if found.enforcer == enforcer && found.hash == hash => "202 duplicate",
            (Some(_), _) => "409 ALREADY_EXISTS",
            (None, None) => "422 EXPIRED",
            (None, Some(life)) => {
                let exchange = Exchange {
                    enforcer,
                    approver,
                    hash,
                    expires: self.now + life,
                    stand: Stand::Pending,
                    decision: None,
                    removed: false,
                    refreshes: 0,
                    refresh_waits: false,
                    events: vec![format!("pendingApproval enforcer:bot-{enforcer}")],
                };
                self.exchanges.insert(slot, exchange);
                "202"
            }
        }
    }

    pub fn decide(
        &mut self,
        slot: usize,
        approver: usize,
        hash: usize,
        decision: usize,
    ) -> &'static str {
        let asked = |exchange: &&Exchange| exchange.approver == approver;
        let Some(found) = self.exchanges.get(&slot).filter(asked) else {
            return "404 NOT_FOUND";
        };
        match self.state(slot) {
            "withdrawn" | "cancelled" => "404 NOT_FOUND",
            "decided" | "delivered" if found.decision == Some(decision) => "200 duplicate",
            "decided" | "delivered" => "409 ALREADY_DECIDED",
            "expired" => "409 EXPIRED",
            _ if found.hash != hash => "400 HASH_MISMATCH",
            _ => {
                self.change(
                    slot,
                    Stand::Decided,
                    &format!("approver:approver-{approver}"),
                );
                self.exchanges.get_mut(&slot).unwrap().decision = Some(decision);
                "200"
            }
        }
    }

    /// A withdrawal by an enforcer, or a cancellation by the administrator.
    pub fn end(&mut self, slot: usize, enforcer: Option<usize>) -> &'static str {
        let own = |exchange: &Exchange| enforcer.is_none_or(|id| exchange.enforcer == id);
        if !self.exchanges.get(&slot).is_some_and(own) {
            return "404 NOT_FOUND";
        }
        match self.state(slot) {
            "decided" | "delivered" => "409 ALREADY_DECIDED",
            "expired" => "409 EXPIRED",
            "withdrawn" | "cancelled" => "409 INVALID_STATE",
            _ => {
                match enforcer {
                    Some(id) => self.change(slot, Stand::Withdrawn, &format!("enforcer:bot-{id}")),
                    None => self.change(slot, Stand::Cancelled, "admin"),
                }
                "200"
            }
        }
    }

    pub fn ack_decision(&mut self, slot: usize, enforcer: usize) -> &'static str {
        let own = |exchange: &&Exchange| exchange.enforcer == enforcer;
        match self
            .exchanges
            .get(&slot)
            .filter(own)
            .map(|found| found.stand)
        {
            Some(Stand::Decided) => {
                self.change(slot, Stand::Delivered, &format!("enforcer:bot-{enforcer}"));
                "200"
            }
            Some(Stand::Delivered) => "200",
            _ => "404 NOT_FOUND",
        }
    }

    pub fn ack_item(&self, slot: usize, approver: usize) -> &'static str {
        match self.exchanges.get(&slot) {
            Some(found) if found.approver == approver => "200",
            _ => "404 NOT_FOUND",
        }
    }

    pub fn ack_refresh(&mut self, slot: usize, enforcer: usize) -> &'static str {
        match self.exchanges.get_mut(&slot) {
            Some(found) if found.enforcer == enforcer && found.refreshes > 0 => {
                found.refresh_waits = false;
                "200"
            }
            _ => "404 NOT_FOUND",
        }
    }

    pub fn remove(&mut self, slot: usize, approver: usize) -> &'static str {
        let there = ["pendingApproval", "expired"].iter().any(|state| {
            self.exchanges.contains_key(&slot) && self.shelf(approver, state, &[slot]) == [slot]
        });
        if !there {
            return "404 NOT_FOUND";
        }
        self.exchanges.get_mut(&slot).unwrap().removed = true;
        "200"
    }

    /// A refresh by an approver, or by the administrator.
    pub fn refresh(&mut self, slot: usize, approver: Option<usize>) -> &'static str {
        let asked = |exchange: &Exchange| approver.is_none_or(|id| exchange.approver == id);
        if !self.exchanges.get(&slot).is_some_and(asked) {
            return "404 NOT_FOUND";
        }
        if !matches!(self.state(slot), "pendingApproval" | "expired") {
            return "409 INVALID_STATE";
        }
        let exchange = self.exchanges.get_mut(&slot).unwrap();
        if !exchange.refresh_waits {
            exchange.refreshes += 1;
            exchange.refresh_waits = true;
        }
        "202"
    }

    fn change(&mut self, slot: usize, stand: Stand, actor: &str) {
        let exchange = self.exchanges.get_mut(&slot).unwrap();
        exchange.stand = stand;
        let state = self.state(slot);
        let events = &mut self.exchanges.get_mut(&slot).unwrap().events;
        events.push(format!("{state} {actor}"));
    }
}
