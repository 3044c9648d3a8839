//! Calls of the real commands: what they did, and whether they were allowed to.

use std::time::Duration;

use super::check::{Rule, Violation, undisturbed};
use super::commands::TIMEOUT;
use super::record::{Book, Record};

/// How long a command may take to end once its time is over.
const ENDING: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandKind {
    Run,
    Hook,
}

/// One call.
#[derive(Clone)]
pub struct CommandTrial {
    pub tool: CommandKind,
    pub begun: Duration,
    pub ended: Option<Duration>,
    /// The verdict, if the person saw the request and signed one.
    pub signed: Option<bool>,
    /// When the gateway had accepted that.
    pub accepted: Option<Duration>,
    /// Whether the command said that it was allowed.
    pub succeeded: bool,
    /// How often the program ran, or the hook allowed the call.
    pub effects: usize,
}

impl Book {
    pub fn begin_trial(&self, tool: CommandKind) -> usize {
        let begun = self.now();
        let trials = &mut self.lock().trials;
        trials.push(CommandTrial {
            tool,
            begun,
            ended: None,
            signed: None,
            accepted: None,
            succeeded: false,
            effects: 0,
        });
        trials.len() - 1
    }

    pub fn sign_trial(&self, number: usize, approve: bool) {
        if let Some(trial) = self.lock().trials.get_mut(number) {
            trial.signed = Some(approve);
        }
    }

    pub fn accept_trial(&self, number: usize) {
        let at = self.now();
        if let Some(trial) = self.lock().trials.get_mut(number) {
            trial.accepted.get_or_insert(at);
        }
    }

    pub fn end_trial(&self, number: usize, succeeded: bool, effects: usize) {
        let at = self.now();
        if let Some(trial) = self.lock().trials.get_mut(number) {
            trial.ended = Some(at);
            (trial.succeeded, trial.effects) = (succeeded, effects);
        }
    }
}

/// Everything that breaks a rule.
pub fn check(record: &Record) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, trial) in record.trials.iter().enumerate() {
        let found = check_one(trial, record).map(|(rule, what)| Violation {
            rule,
            at: trial.begun,
            what: format!("{}: {what}", name(trial, number)),
        });
        violations.extend(found);
    }
    violations
}

/// As violations name it.
pub fn name(trial: &CommandTrial, number: usize) -> String {
    format!("{:?}-{number}", trial.tool)
}

fn check_one(trial: &CommandTrial, record: &Record) -> Option<(Rule, String)> {
    let effect = |what: &str| Some((Rule::Effect, what.to_owned()));
    if trial.effects > 1 {
        return effect("it had its effect twice");
    }
    if trial.effects == 1 && trial.signed != Some(true) {
        return effect("it had its effect, and nobody approved it");
    }
    if trial.succeeded != (trial.effects == 1) {
        return effect("what it said is not what it did");
    }
    let Some(ended) = trial.ended else {
        return Some((Rule::Waiting, "it never ended".to_owned()));
    };
    let took = ended.saturating_sub(trial.begun);
    if took > TIMEOUT + ENDING {
        let what = format!("it took {:.1} s", took.as_secs_f64());
        return Some((Rule::Waiting, what));
    }
    match (trial.signed, trial.accepted) {
        (Some(true), Some(_)) if trial.effects == 0 && took < TIMEOUT => {
            effect("it was approved, and had no effect")
        }
        // Its time was not over, so that nobody was told no.
        (None, _) if took < TIMEOUT => effect("it ended without an answer"),
        (_, Some(accepted)) if !undisturbed(record, accepted, ended) => {
            let what = "it ended long after its decision".to_owned();
            Some((Rule::Waiting, what))
        }
        _ => None,
    }
}
