//! Reading the states of a team from the gateway, and following them. The gateway can withhold
//! states, and make none.

use std::collections::BTreeSet;

use tokio::time::Instant;

use crate::access::GatewayAccess;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, path};
use crate::profile::{TeamFile, TeamRecord};
use crate::wire;
use countersign_e2e::{DeviceId, Error, SignedTeamState, TeamChain, TeamId};

/// The states of a team that the gateway had.
pub(crate) struct ChainReading {
    pub(crate) chain: TeamChain,
    /// A state that contradicts the chain.
    pub(crate) fork: Option<SignedTeamState>,
    /// The devices that have signed the states that were read.
    pub(crate) signers: BTreeSet<DeviceId>,
}

/// Reads on from this chain, or from the first state.
pub(crate) async fn read_chain(
    access: &GatewayAccess,
    team: TeamId,
    mut chain: Option<TeamChain>,
    deadline: Instant,
) -> Result<ChainReading> {
    let states = path(&["v1", "teams", &team.to_string(), "states"]);
    let mut signers = BTreeSet::new();
    loop {
        let call = match &chain {
            Some(chain) => format!("{states}?after={}", chain.head().seq),
            None => states.clone(),
        };
        let call = GatewayCall::get(call);
        let answer = access.client.expect(&call, &[200], deadline).await?;
        let node = wire::parse(&answer.body)?;
        let listed = wire::array(&node, "states");
        let listed = listed.ok_or_else(|| ClientError::answer("a list of states"))?;
        let mut is_longer = false;
        for state in listed {
            let signed = SignedTeamState::parse(state)?;
            let named: Vec<_> = signed.signers_named().collect();
            let Some(known) = &mut chain else {
                let begun = TeamChain::begin(signed)?;
                if begun.head().team != team {
                    return Err(ClientError::answer("the states of this team"));
                }
                (chain, is_longer) = (Some(begun), true);
                signers.extend(named);
                continue;
            };
            match known.follow(signed.clone()) {
                Ok(is_new) => is_longer |= is_new,
                Err(Error::TeamFork) => {
                    return Ok(ChainReading {
                        chain: known.clone(),
                        fork: Some(signed),
                        signers,
                    });
                }
                Err(error) => return Err(error.into()),
            }
            signers.extend(named);
        }
        if !is_longer {
            let chain = chain.ok_or_else(|| ClientError::answer("a first state"))?;
            return Ok(ChainReading {
                chain,
                fork: None,
                signers,
            });
        }
    }
}

/// All states of this chain, as their signers published them, with signatures that verify.
pub(crate) async fn read_states(
    access: &GatewayAccess,
    chain: &TeamChain,
    deadline: Instant,
) -> Result<Vec<String>> {
    let head = chain.head();
    let states = path(&["v1", "teams", &head.team.to_string(), "states"]);
    let (mut texts, mut read) = (Vec::new(), None::<TeamChain>);
    loop {
        let call = match texts.len() {
            0 => states.clone(),
            count => format!("{states}?after={}", count - 1),
        };
        let call = GatewayCall::get(call);
        let answer = access.client.expect(&call, &[200], deadline).await?;
        let node = wire::parse(&answer.body)?;
        let listed = wire::array(&node, "states");
        let before = texts.len();
        for state in listed.ok_or_else(|| ClientError::answer("a list of states"))? {
            let signed = SignedTeamState::parse(state)?;
            let own = signed.state().head();
            if own.seq as usize != texts.len() || !chain.knows(&own)? {
                return Err(ClientError::answer("the states of this team"));
            }
            texts.push(signed.to_text());
            match &mut read {
                Some(read) => drop(read.follow(signed)?),
                None => read = Some(TeamChain::begin(signed)?),
            }
            if own == head {
                return Ok(texts);
            }
        }
        if texts.len() == before {
            return Err(ClientError::answer("all states of this team"));
        }
    }
}

/// Reads on from what the file knows, and keeps the result there.
pub(crate) async fn renew_chain(
    access: &GatewayAccess,
    file: &TeamFile,
    record: &TeamRecord,
    deadline: Instant,
) -> Result<TeamChain> {
    let known = record.chain()?;
    let team = known.head().team;
    let ChainReading { chain, fork, .. } = read_chain(access, team, Some(known), deadline).await?;
    let now = access.now();
    file.change(team, |record| {
        record.extend(&chain, now);
        if let Some(fork) = fork {
            record.fork = vec![chain.newest().to_text(), fork.to_text()];
        }
    })?;
    // As it is kept now: another program may know more, or of a fork.
    let record = file.find(team)?;
    record
        .ok_or(Error::Team("it was removed meanwhile"))?
        .chain()
}
