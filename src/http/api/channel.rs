//! Opens the channels that `sse` and `ws` serve, and reads their pages.

use std::sync::Arc;

use uuid::Uuid;

use super::reply::AppState;
use super::{limit, path};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::{CallerIdentity, EnforcerOrApprover};
use crate::gateway::limit::RateClass;
use crate::gateway::{MessageFeed, PushService};
use crate::http::server::memory::{MemoryAccount, MemoryBudget, MemoryPermit};
use crate::protocol::presence::Transport;
use crate::wake::WakeKey;

/// Counts a channel that a caller wants as the id in the parameter `name`, and returns its key.
pub fn admit(
    node: &AppState,
    caller: &EnforcerOrApprover,
    name: &'static str,
    id: &str,
) -> Result<WakeKey, Error> {
    let origin = caller.origin();
    let tenant = origin.tenant.clone();
    let key = match caller {
        EnforcerOrApprover::Enforcer(caller) => {
            WakeKey::Enforcer(tenant, caller.acting(Some(path::id(name, id)?), name)?)
        }
        EnforcerOrApprover::Approver(caller) => {
            WakeKey::Approver(tenant, caller.acting(Some(path::id(name, id)?), name)?)
        }
    };
    limit::admit_identity(
        node,
        RateClass::Connect,
        origin,
        caller.bound().is_some(),
        id,
    )?;
    Ok(key)
}

/// Opens a channel for `key`. An approver's feed starts near `resume_after`, if that is given.
pub async fn open(
    node: &AppState,
    origin: CallerIdentity,
    key: WakeKey,
    transport: Transport,
    resume_after: Option<Uuid>,
) -> Result<MessageFeed, Error> {
    let gateway = node.gateway.clone();
    node.finish(async move {
        let channel = gateway
            .channels
            .open_channel(&origin, key, transport)
            .await?;
        match &channel.key {
            WakeKey::Approver(..) => {
                let withdrawals = transport == Transport::WebSocket;
                MessageFeed::approver(&gateway.context, channel, withdrawals, resume_after).await
            }
            WakeKey::Enforcer(..) | WakeKey::Exchange(..) => {
                MessageFeed::enforcer(&gateway.context, channel)
            }
        }
    })
    .await
}

/// The next few messages of a feed, with their memory; an error if there is no memory now.
pub async fn next_page(
    feed: &mut MessageFeed,
    budget: &Arc<MemoryBudget>,
    account: MemoryAccount,
) -> Result<(Vec<PushService>, MemoryPermit), Error> {
    let mut memory = MemoryPermit::new(budget, account);
    // Before the page is read, as far as its size is known.
    if !memory.try_grow(feed.next_page_bytes().max(1)) {
        return Err(Error::Unavailable);
    }
    let page = feed.next_page().await?;
    memory.set(page.iter().map(|push| push.text.len()).sum());
    Ok((page, memory))
}
