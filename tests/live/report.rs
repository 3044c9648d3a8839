//! The results, beside the expected ones.

use countersign::agent::Agent;

use super::agents::Tool;
use super::cases::{Case, hole};

/// The result of one call.
pub struct Seen {
    pub happened: bool,
    /// A further fault, if any.
    pub wrong: Option<String>,
    /// The text that the model was told of its call.
    pub told: String,
    pub seconds: u64,
}

#[derive(Default)]
pub struct Report {
    lines: Vec<String>,
    wrong: usize,
    holes: Vec<String>,
}

impl Report {
    pub fn add(&mut self, agent: Agent, case: Case, tool: Tool, seen: &Seen) {
        let hole = hole(agent, case);
        let expected = case == Case::Approved || hole.is_some();
        let done = if seen.happened {
            "happened"
        } else {
            "did not happen"
        };
        let verdict = match (&seen.wrong, seen.happened == expected) {
            (Some(wrong), _) => format!("WRONG: {wrong}"),
            (None, false) if hole.is_some() => "WRONG: this hole has closed".to_owned(),
            (None, false) => "WRONG".to_owned(),
            (None, true) if hole.is_some() => "known hole".to_owned(),
            (None, true) => "as expected".to_owned(),
        };
        if verdict.starts_with("WRONG") {
            self.wrong += 1;
        }
        if let Some(hole) = hole.map(|hole| format!("{agent}: {hole}"))
            && !self.holes.contains(&hole)
        {
            self.holes.push(hole);
        }
        let told: String = seen.told.chars().take(160).collect();
        let line = format!(
            "{:<9} {:<6} {:<15} {done:<15} {verdict:<12} {:>3} s  {}",
            agent.as_str(),
            tool.as_str(),
            case.as_str(),
            seen.seconds,
            told.replace('\n', " ")
        );
        println!("{line}");
        self.lines.push(line);
    }

    /// True if everything was as expected.
    pub fn print(&self) -> bool {
        println!(
            "\n{} cells, {} not as expected",
            self.lines.len(),
            self.wrong
        );
        for line in self.lines.iter().filter(|line| line.contains("WRONG")) {
            println!("{line}");
        }
        for hole in &self.holes {
            println!("known hole: {hole}");
        }
        self.wrong == 0 && !self.lines.is_empty()
    }
}
