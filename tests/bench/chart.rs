//! The results as a picture: one bar per target, full where the target is just met.

use std::fmt::Write as _;

use super::report::{Report, Row, Target};

const LEFT: f64 = 470.0;
const UNIT: f64 = 220.0;
const LINE: f64 = 26.0;
const WIDTH: f64 = LEFT + UNIT * 2.0 + 110.0;

/// Draws every line that has a target. A bar is as long as the ratio is good: past the mark is
/// better than asked.
pub fn draw(report: &Report) -> String {
    let rows: Vec<_> = report
        .rows
        .iter()
        .filter(|row| !matches!(row.target, Target::Open))
        .collect();
    let height = LINE * f64::from(u32::try_from(rows.len()).unwrap_or_default()) + 50.0;
    let mark = LEFT + UNIT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{mark}\" y=\"20\" text-anchor=\"middle\" fill=\"#555\">target</text>\n"
    );
    let mut y = 36.0;
    for row in rows {
        bar(&mut svg, row, y);
        y += LINE;
    }
    let bottom = height - 8.0;
    // Writing to a string cannot fail.
    let _written = writeln!(
        svg,
        "<line x1=\"{mark}\" y1=\"26\" x2=\"{mark}\" y2=\"{bottom}\" stroke=\"#555\" stroke-dasharray=\"3 3\"/>\n</svg>"
    );
    svg
}

fn bar(svg: &mut String, row: &Row, y: f64) {
    let (good, sign, bound) = match row.target {
        Target::AtLeast(least) => (row.ratio / least, "≥", least),
        Target::AtMost(most) => (most / row.ratio, "≤", most),
        Target::Open => return,
    };
    let length = UNIT * good.clamp(0.02, 2.0);
    let colour = if row.target.is_met(row.ratio) {
        "#2a7f62"
    } else {
        "#b3402a"
    };
    let (text, label, after) = (y + 13.0, LEFT - 10.0, LEFT + length + 6.0);
    let (name, ratio) = (&row.name, row.ratio);
    // Writing to a string cannot fail.
    let _written = writeln!(
        svg,
        "<text x=\"{label}\" y=\"{text}\" text-anchor=\"end\">{name}</text>\
         <rect x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"18\" fill=\"{colour}\"/>\
         <text x=\"{after:.1}\" y=\"{text}\" fill=\"#333\">{ratio:.2} ({sign} {bound})</text>"
    );
}
