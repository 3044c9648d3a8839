//! What is known of a call before anyone is asked: whether anyone needs to be, and what they would see. It reads files, so it
//! runs beside the rest.

use countersign::agent::{Agent, Base, Event, Judgement, Places, Proposal};
use countersign::client::profile::ProfileFile;

use super::files::{self, OwnPolicy};

pub enum Prepared {
    Denied(String),
    /// Nobody needs to be asked.
    NotAsked,
    Ask(Box<Ask>),
}

pub struct Ask {
    pub proposal: Proposal,
    pub may_be_granted: bool,
    /// Something is wrong with a file that says what is to be asked.
    pub ask_all_reason: Option<String>,
    places: Places,
    bases: Vec<Base>,
}

pub fn prepare(
    agent: Agent,
    event: &Event,
    file: &ProfileFile,
    own_policy: &OwnPolicy,
    every_call: bool,
) -> Prepared {
    prepared(agent, event, file, own_policy, every_call).unwrap_or_else(Prepared::Denied)
}

fn prepared(
    agent: Agent,
    event: &Event,
    file: &ProfileFile,
    own_policy: &OwnPolicy,
    every_call: bool,
) -> Result<Prepared, String> {
    let call = event.call().ok_or("it is not a call")?;
    let directory = event.directory.as_deref().unwrap_or_default();
    let places = files::places(directory, file)?;
    let policy = files::policy(&places, own_policy)?;
    let names = call.named_paths();
    let named = names.and_then(|names| files::named(&places, &names));
    let may_be_granted = match policy.judge(agent, call, &places, named.as_deref()) {
        Judgement::NotAsked if !every_call => return Ok(Prepared::NotAsked),
        Judgement::Denied(reason) => return Ok(Prepared::Denied(reason)),
        Judgement::AlwaysAsked => false,
        Judgement::NotAsked | Judgement::Asked => true,
    };
    let bases = files::bases(&places, &call.changed_files()?)?;
    Ok(Prepared::Ask(Box::new(Ask {
        proposal: call.propose(agent, directory, &bases)?,
        may_be_granted,
        ask_all_reason: policy.ask_all_reason().map(str::to_owned),
        places,
        bases,
    })))
}

impl Ask {
    /// Whether every file is still what the approver was shown a change of.
    pub fn still_holds(&self) -> Result<(), String> {
        let names: Vec<_> = self.bases.iter().map(|base| base.given.as_str()).collect();
        let now = files::bases(&self.places, &names)?;
        match self.bases.iter().zip(&now).find(|(then, now)| then != now) {
            Some((base, _)) => Err(format!(
                "{} changed while the decision was awaited, so what was approved is not what would be written; read it and ask again",
                base.given
            )),
            None => Ok(()),
        }
    }
}
