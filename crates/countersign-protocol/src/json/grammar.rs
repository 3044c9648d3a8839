//! Parses the grammar of RFC 8259 in one pass over UTF-8 text. Every slice starts and ends at an
//! ASCII byte, so none splits a character. A pointer is built only while an error propagates.

use std::borrow::Cow;
use std::collections::HashSet;

use super::value::{
    JsonError, JsonMember, JsonNode, JsonObject, JsonProblem, JsonValue, MAX_DEPTH, MAX_VALUES,
};

/// 2^53−1: up to here every integer is a distinct double.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Bytes of a string that are looked at together.
const BLOCK: usize = 32;

/// Up to this many members, comparing names one by one is cheaper than hashing them.
const FEW_MEMBERS: usize = 16;

/// Not zero if a plain run of a string ends before this byte. Arithmetic, since lazy operators are branches.
fn ends_run(byte: u8) -> u8 {
    u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < b' ')
}

type ScanResult<T> = Result<T, JsonError>;

pub(super) fn document(text: &str) -> ScanResult<JsonNode<'_>> {
    let mut scanner = JsonScanner {
        text,
        at: 0,
        depth: 0,
        values: 0,
    };
    scanner.skip_white_space();
    let node = scanner.node()?;
    scanner.skip_white_space();
    match scanner.peek() {
        None => Ok(node),
        Some(_) => Err(JsonError::new(JsonProblem::TrailingBytes, scanner.at)),
    }
}

struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    values: usize,
}

impl<'a> JsonScanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, byte: u8) -> ScanResult<()> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    fn unexpected(&self) -> JsonError {
        let reason = match self.peek() {
            Some(_) => JsonProblem::Syntax,
            None => JsonProblem::UnexpectedEnd,
        };
        JsonError::new(reason, self.at)
    }

    fn node(&mut self) -> ScanResult<JsonNode<'a>> {
        let start = self.at;
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(JsonError::new(JsonProblem::TooManyValues, start));
        }
        let value = match self.peek() {
            Some(b'n') => self.word("null", JsonValue::Null)?,
            Some(b't') => self.word("true", JsonValue::Bool(true))?,
            Some(b'f') => self.word("false", JsonValue::Bool(false))?,
            Some(b'"') => JsonValue::String(self.string()?),
            Some(b'[') => JsonValue::Array(self.nested(Self::items)?),
            Some(b'{') => JsonValue::Object(self.nested(Self::members)?),
            Some(b'-' | b'0'..=b'9') => JsonValue::Number(self.number()?),
            _ => return Err(self.unexpected()),
        };
        let raw = self.since(start);
        Ok(JsonNode { raw, value })
    }

    fn word(&mut self, word: &str, value: JsonValue<'a>) -> ScanResult<JsonValue<'a>> {
        for byte in word.bytes() {
            self.require(byte)?;
        }
        Ok(value)
    }

    /// The content of an array or object, one level deeper.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> ScanResult<T>) -> ScanResult<T> {
        if self.depth == MAX_DEPTH {
            return Err(JsonError::new(JsonProblem::TooDeep, self.at));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_white_space();
        let content = inside(self)?;
        self.depth -= 1;
        Ok(content)
    }

    fn items(&mut self) -> ScanResult<Vec<JsonNode<'a>>> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(items);
        }
        loop {
            self.skip_white_space();
            let item = self.node();
            items.push(item.map_err(|error| error.inside(&items.len().to_string()))?);
            self.skip_white_space();
            if self.take(b']') {
                return Ok(items);
            }
            self.require(b',')?;
        }
    }

    fn members(&mut self) -> ScanResult<JsonObject<'a>> {
        let mut members = Vec::new();
        let mut names = HashSet::new();
        if self.take(b'}') {
            return Ok(JsonObject { members });
        }
        loop {
            self.skip_white_space();
            let start = self.at;
            let name = self.string()?;
            let raw_name = self.since(start);
            if is_repeated(&name, &members, &mut names) {
                return Err(JsonError::new(JsonProblem::DuplicateMember, start).inside(&name));
            }
            let node = self.member_value().map_err(|error| error.inside(&name))?;
            members.push(JsonMember {
                name,
                raw_name,
                node,
            });
            self.skip_white_space();
            if self.take(b'}') {
                return Ok(JsonObject { members });
            }
            self.require(b',')?;
        }
    }

    fn member_value(&mut self) -> ScanResult<JsonNode<'a>> {
        self.skip_white_space();
        self.require(b':')?;
        self.skip_white_space();
        self.node()
    }

    /// A string or a member name, unescaped.
    fn string(&mut self) -> ScanResult<Cow<'a, str>> {
        self.require(b'"')?;
        let plain = self.plain_run();
        if self.take(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        while !self.take(b'"') {
            text.push(self.escape()?);
            text.push_str(self.plain_run());
        }
        Ok(Cow::Owned(text))
    }

    /// The longest run without a quote, escape or control character.
    fn plain_run(&mut self) -> &'a str {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        // Payloads are one long run. A block is looked at without branches, so that the compiler uses vectors: six times as fast.
        let (blocks, _) = rest.as_chunks::<BLOCK>();
        let is_plain = |block: &&[u8; BLOCK]| {
            let found = block.iter().fold(0, |found, &byte| found | ends_run(byte));
            found == 0
        };
        let whole = blocks.iter().take_while(is_plain).count() * BLOCK;
        let length = rest[whole..].iter().position(|&byte| ends_run(byte) != 0);
        let length = length.map(|length| whole + length);
        self.at += length.unwrap_or(rest.len());
        self.since(start)
    }

    fn escape(&mut self) -> ScanResult<char> {
        let start = self.at;
        self.require(b'\\')?;
        let character = match self.peek() {
            Some(b'u') => return self.unicode_escape(start),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(character)
    }

    /// One `\u` escape, or the two that make a surrogate pair, from the `u` on.
    fn unicode_escape(&mut self, start: usize) -> ScanResult<char> {
        let mut code = self.code_unit()?;
        if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
            self.at += 1;
            let low = self.code_unit()?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
        }
        // An unpaired surrogate is no character.
        match char::from_u32(code) {
            None => Err(JsonError::new(JsonProblem::LoneSurrogate, start)),
            Some('\0') => Err(JsonError::new(JsonProblem::NulCharacter, start)),
            Some(character) => Ok(character),
        }
    }

    /// The letter `u` and the four hexadecimal digits behind it.
    fn code_unit(&mut self) -> ScanResult<u32> {
        self.require(b'u')?;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit << 4 | digit.ok_or_else(|| self.unexpected())?;
            self.at += 1;
        }
        Ok(unit)
    }

    /// A number, correctly rounded, within the range that all parsers read alike.
    fn number(&mut self) -> ScanResult<f64> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        } else if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.unexpected());
        }
        let mut is_integer = true;
        if self.take(b'.') {
            is_integer = false;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            is_integer = false;
            if !self.take(b'-') {
                self.take(b'+');
            }
            self.digits()?;
        }
        let literal = self.since(start);
        if is_integer {
            return safe_integer(literal)
                .ok_or_else(|| JsonError::new(JsonProblem::IntegerRange, start));
        }
        match literal.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            Ok(_) => Err(JsonError::new(JsonProblem::NumberOverflow, start)),
            Err(_) => Err(JsonError::new(JsonProblem::Syntax, start)),
        }
    }

    fn digits(&mut self) -> ScanResult<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected());
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "every integer in the range is a double"
)]
fn safe_integer(literal: &str) -> Option<f64> {
    let integer = literal.parse::<i64>().ok()?;
    (integer.unsigned_abs() <= MAX_SAFE_INTEGER).then_some(integer as f64)
}

/// Whether an earlier member has this name. `names` is filled only for objects of many members.
#[expect(clippy::ptr_arg, reason = "cloning a borrowed `Cow` copies no text")]
fn is_repeated<'a>(
    name: &Cow<'a, str>,
    members: &[JsonMember<'a>],
    names: &mut HashSet<Cow<'a, str>>,
) -> bool {
    if members.len() < FEW_MEMBERS {
        return members.iter().any(|member| member.name == *name);
    }
    if names.is_empty() {
        names.extend(members.iter().map(|member| member.name.clone()));
    }
    !names.insert(name.clone())
}
