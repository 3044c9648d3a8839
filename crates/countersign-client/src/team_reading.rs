//! Reading the states of a team from the gateway, and following them. The gateway can withhold
//! states, and make none.

use tokio::time::Instant;

use crate::access::GatewayAccess;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, path};
use crate::profile::{TeamFile, TeamRecord};
use crate::wire;
use countersign_e2e::{Error, SignedTeamState, TeamChain, TeamId};

/// The states of a team that the gateway had.
pub(crate) struct ChainReading {
    pub(crate) chain: TeamChain,
    /// A state that contradicts the chain.
    pub(crate) fork: Option<SignedTeamState>,
    /// The states that the chain took over, with signatures that verify.
    pub(crate) states: Vec<SignedTeamState>,
}

/// Reads on from this chain, or from the first state.
pub(crate) async fn read_chain(
    access: &GatewayAccess,
    team: TeamId,
    mut chain: Option<TeamChain>,
    deadline: Instant,
) -> Result<ChainReading> {
    let path = path(&["v1", "teams", &team.to_string(), "states"]);
    let (mut states, mut fork) = (Vec::new(), None);
    while fork.is_none() {
        let call = match &chain {
            Some(chain) => format!("{path}?after={}", chain.head().seq),
            None => path.clone(),
        };
        let call = GatewayCall::get(call);
        let answer = access.client.expect(&call, &[200], deadline).await?;
        let node = wire::parse(&answer.body)?;
        let listed = wire::array(&node, "states");
        let before = states.len();
        for state in listed.ok_or_else(|| ClientError::answer("a list of states"))? {
            let signed = SignedTeamState::parse(state)?;
            let Some(known) = &mut chain else {
                let begun = TeamChain::begin(signed.clone())?;
                if begun.head().team != team {
                    return Err(ClientError::answer("the states of this team"));
                }
                chain = Some(begun);
                states.push(signed);
                continue;
            };
            match known.follow(signed.clone()) {
                Ok(true) => states.push(signed),
                // Nobody has verified the signatures of a copy.
                Ok(false) => {}
                Err(Error::TeamFork) => {
                    fork = Some(signed);
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if states.len() == before {
            break;
        }
    }
    let chain = chain.ok_or_else(|| ClientError::answer("a first state"))?;
    Ok(ChainReading {
        chain,
        fork,
        states,
    })
}

/// All states of this chain, as their signers published them, with signatures that verify.
pub(crate) async fn read_states(
    access: &GatewayAccess,
    chain: &TeamChain,
    deadline: Instant,
) -> Result<Vec<String>> {
    let head = chain.head();
    let read = read_chain(access, head.team, None, deadline).await?;
    if !read.chain.knows(&head)? {
        return Err(ClientError::answer("all states of this team"));
    }
    let states = read.states.iter().take(head.seq as usize + 1);
    Ok(states.map(SignedTeamState::to_text).collect())
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
    let removed = ClientError::Choice("the team was removed from this profile meanwhile");
    record.ok_or(removed)?.chain()
}
