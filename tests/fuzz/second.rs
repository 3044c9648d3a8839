//! A second reading of JSON and its canonical form, written to be obviously right rather than fast:
//! what ours is compared with. It takes more than ours does, and trusts that ours refused it.

use std::iter::Peekable;
use std::str::Chars;

/// A value.
#[derive(Debug)]
pub enum Second {
    Plain(&'static str),
    Number(f64),
    Text(String),
    List(Vec<Second>),
    Object(Vec<(String, Second)>),
}

/// Reads a text.
pub fn read(text: &str) -> Option<Second> {
    let mut chars = text.chars().peekable();
    let value = value(&mut chars)?;
    blank(&mut chars);
    chars.next().is_none().then_some(value)
}

fn blank(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| " \t\r\n".contains(*c)).is_some() {}
}

fn value(chars: &mut Peekable<Chars<'_>>) -> Option<Second> {
    blank(chars);
    match chars.peek()? {
        '"' => string(chars).map(Second::Text),
        '[' => {
            chars.next();
            let mut items = Vec::new();
            blank(chars);
            if chars.next_if_eq(&']').is_some() {
                return Some(Second::List(items));
            }
            loop {
                items.push(value(chars)?);
                blank(chars);
                match chars.next()? {
                    ',' => {}
                    ']' => return Some(Second::List(items)),
                    _ => return None,
                }
            }
        }
        '{' => {
            chars.next();
            let mut members = Vec::new();
            blank(chars);
            if chars.next_if_eq(&'}').is_some() {
                return Some(Second::Object(members));
            }
            loop {
                blank(chars);
                let name = string(chars)?;
                blank(chars);
                chars.next_if_eq(&':')?;
                members.push((name, value(chars)?));
                blank(chars);
                match chars.next()? {
                    ',' => {}
                    '}' => return Some(Second::Object(members)),
                    _ => return None,
                }
            }
        }
        _ => {
            let mut word = String::new();
            while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || "+-.".contains(*c)) {
                word.push(c);
            }
            match word.as_str() {
                "null" => Some(Second::Plain("null")),
                "true" => Some(Second::Plain("true")),
                "false" => Some(Second::Plain("false")),
                number => number.parse().ok().map(Second::Number),
            }
        }
    }
}

fn string(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    chars.next_if_eq(&'"')?;
    let mut units: Vec<u16> = Vec::new();
    loop {
        let unit = match chars.next()? {
            '"' => return String::from_utf16(&units).ok(),
            '\\' => match chars.next()? {
                'b' => 8,
                't' => 9,
                'n' => 10,
                'f' => 12,
                'r' => 13,
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    u16::from_str_radix(&digits, 16).ok()?
                }
                c @ ('"' | '\\' | '/') => c as u16,
                _ => return None,
            },
            c => {
                units.extend(c.encode_utf16(&mut [0; 2]).iter());
                continue;
            }
        };
        units.push(unit);
    }
}

/// The canonical form (RFC 8785).
pub fn canonical(value: &Second) -> String {
    match value {
        Second::Plain(word) => (*word).to_owned(),
        Second::Number(number) => ecmascript(*number),
        Second::Text(text) => quoted(text),
        Second::List(items) => {
            let items: Vec<_> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Second::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", quoted(name), canonical(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => out.extend(format!("\\u{:04x}", c as u32).chars()),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Of two shortest forms that are equally close, the even one.
fn even_of_two(digits: String, number: f64) -> String {
    let exact = format!("{:.800e}", number.abs());
    let exact = exact
        .split('e')
        .next()
        .expect("a mantissa")
        .replace('.', "");
    let exact = exact.trim_end_matches('0');
    let shortest: u64 = digits.parse().expect("few digits");
    if shortest.is_multiple_of(2) {
        return digits;
    }
    [shortest - 1, shortest]
        .into_iter()
        .find(|lower| exact == format!("{lower}5"))
        .map_or(digits, |lower| (lower + lower % 2).to_string())
}

/// A number as ECMAScript prints it (`Number::toString`), from the shortest digits that read back
/// as it.
fn ecmascript(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').expect("an exponent");
    let digits = even_of_two(mantissa.replace('.', ""), number);
    let exponent: i32 = exponent.parse().expect("a number");
    let count = i32::try_from(digits.len()).expect("few digits");
    // The digits times ten to the power of `point - count`.
    let point = exponent + 1;
    let text = if count <= point && point <= 21 {
        digits + &"0".repeat(usize::try_from(point - count).expect("not negative"))
    } else if 0 < point && point <= 21 {
        let (whole, rest) = digits.split_at(usize::try_from(point).expect("positive"));
        format!("{whole}.{rest}")
    } else if -6 < point && point <= 0 {
        let zeros = "0".repeat(usize::try_from(-point).expect("not negative"));
        format!("0.{zeros}{digits}")
    } else {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!(".{rest}")
        };
        let direction = if exponent < 0 { '-' } else { '+' };
        format!("{first}{rest}e{direction}{}", exponent.abs())
    };
    format!("{sign}{text}")
}
