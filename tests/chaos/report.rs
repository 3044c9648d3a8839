//! The table: one line for each fault.

use std::collections::BTreeMap;
use std::time::Duration;

use super::check::Violation;

/// The figures of one fault.
#[derive(Default)]
pub struct Line {
    pub fault: String,
    pub begun: Duration,
    pub exchanges: usize,
    pub errors: BTreeMap<String, usize>,
    /// From the fault's end, or from its beginning where the target says so, until every entrance
    /// accepted again.
    pub back: Option<Duration>,
    pub normal: Option<Duration>,
    /// The p99 of unrelated calls against that of the calm phase.
    pub unrelated: Option<f64>,
    /// Targets that were missed, and remarks.
    pub missed: Vec<String>,
    pub remarks: Vec<String>,
    pub violations: usize,
}

/// The table, and whether everything is as it should be.
pub fn print(lines: &mut [Line], violations: &[Violation], exchanges: usize) -> bool {
    for violation in violations {
        if let Some(line) = under(lines, violation) {
            line.violations += 1;
        }
    }
    println!(
        "\n{:<16} {:>9} {:>8} {:>9} {:>9} {:>10}  errors seen by clients",
        "fault", "exchanges", "back", "p99 back", "unrelated", "violations"
    );
    let (mut missed, mut total) = (0, 0);
    for line in &*lines {
        let time = |time: Option<Duration>| match time {
            Some(time) => format!("{:.2} s", time.as_secs_f64()),
            None => "–".to_owned(),
        };
        let unrelated = line
            .unrelated
            .map_or("–".to_owned(), |factor| format!("{factor:.1} ×"));
        let errors: Vec<String> = line
            .errors
            .iter()
            .map(|(name, count)| format!("{name}: {count}"))
            .collect();
        println!(
            "{:<16} {:>9} {:>8} {:>9} {:>9} {:>10}  {}",
            line.fault,
            line.exchanges,
            time(line.back),
            time(line.normal),
            unrelated,
            line.violations,
            errors.join(", ")
        );
        for remark in &line.remarks {
            println!("{:<16} {remark}", "");
        }
        for target in &line.missed {
            println!("{:<16} MISSED: {target}", "");
        }
        missed += line.missed.len();
        total += line.exchanges;
    }
    println!("\n{exchanges} exchanges in all, {total} of them under faults and after them");
    print_violations(lines, violations);
    println!("{} violations, {missed} missed targets", violations.len());
    violations.is_empty() && missed == 0
}

/// The fault that an exchange began under, or after.
fn under<'a>(lines: &'a mut [Line], violation: &Violation) -> Option<&'a mut Line> {
    let mut before = lines.iter_mut().rev();
    before.find(|line| line.begun <= violation.at)
}

fn print_violations(lines: &mut [Line], violations: &[Violation]) {
    const SHOWN: usize = 3;
    let mut groups: BTreeMap<(String, String), Vec<&Violation>> = BTreeMap::new();
    for violation in violations {
        let fault = under(lines, violation).map(|line| line.fault.clone());
        let group = (format!("{:?}", violation.rule), fault.unwrap_or_default());
        groups.entry(group).or_default().push(violation);
    }
    for ((rule, fault), found) in groups {
        println!("{rule} under {fault}: {}", found.len());
        for violation in found.iter().take(SHOWN) {
            let at = violation.at.as_secs_f64();
            println!("  at {at:.1} s: {}", violation.what);
        }
        if found.len() > SHOWN {
            println!("  and {} more", found.len() - SHOWN);
        }
    }
}
