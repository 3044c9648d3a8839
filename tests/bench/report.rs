//! The results: figures beside their references, ratios, and what they should be.

use std::fmt::Write as _;

/// The target of a ratio.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
    /// No target: it tells how something grows.
    Open,
}

impl Target {
    /// Whether a ratio is good enough.
    pub fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
            Self::Open => true,
        }
    }
}

/// One line of the results.
pub struct Row {
    /// The name of the measurement.
    pub name: String,
    /// How much.
    pub figure: String,
    /// Beside what.
    pub reference: String,
    /// One by the other.
    pub ratio: f64,
    pub target: Target,
}

/// The results.
#[derive(Default)]
pub struct Report {
    /// Line by line.
    pub rows: Vec<Row>,
}

impl Report {
    /// Adds a line, and shows it at once: a run takes minutes.
    pub fn add(&mut self, name: &str, figure: (f64, &str), reference: (f64, &str), target: Target) {
        let row = Row {
            name: name.to_owned(),
            figure: with_unit(figure),
            reference: with_unit(reference),
            ratio: figure.0 / reference.0,
            target,
        };
        eprintln!("{}", line(&row));
        self.rows.push(row);
    }

    /// All of it as text.
    pub fn table(&self) -> String {
        let mut text = format!(
            "Nodes as `countersign dev` starts them: row-level security is off.\n\n{:<66} {:>14} {:>24} {:>7}  {}\n",
            "measured", "figure", "reference", "ratio", "target"
        );
        for row in &self.rows {
            text.push_str(&line(row));
            text.push('\n');
        }
        text
    }
}

fn line(row: &Row) -> String {
    let Row {
        name,
        figure,
        reference,
        ratio,
        target,
    } = row;
    let mut text = format!("{name:<66} {figure:>14} {reference:>24} {ratio:>7.2}  ");
    let met = if target.is_met(*ratio) {
        ""
    } else {
        "  MISSED"
    };
    // Writing to a string cannot fail.
    let _written = match target {
        Target::AtLeast(least) => write!(text, "≥ {least}{met}"),
        Target::AtMost(most) => write!(text, "≤ {most}{met}"),
        Target::Open => Ok(()),
    };
    text.trim_end().to_owned()
}

fn with_unit((value, unit): (f64, &str)) -> String {
    if value >= 100.0 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.2} {unit}")
    }
}
