//! Progress, remarks and questions to a person. Standard output is for results and, in `run`, for
//! the command itself. Everything here goes to standard error, and questions to the terminal.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::Context as _;
pub use countersign::agent::parse_duration;
use nix::sys::termios::{FlushArg, tcflush};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use terminal_size::{Width, terminal_size_of};

const CLEAR_LINE: &str = "\r\x1b[K";

/// Standard error, which may be a terminal or a file.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent facts about a stream"
)]
pub struct TerminalScreen {
    terminal: bool,
    colour: bool,
    quiet: bool,
    /// Whether a line of progress is shown that the next output replaces.
    line: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum Colour {
    Red,
    Green,
    Yellow,
    Bold,
    Dim,
}

impl TerminalScreen {
    /// A `quiet` one shows no progress.
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            terminal,
            colour: terminal && wants_colour(),
            quiet,
            line: false,
        }
    }

    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    pub fn paint(&self, colour: Colour, text: &str) -> String {
        paint(self.colour, colour, text)
    }

    /// A QR code, unless this is no terminal, or one that is too narrow for it. A very long text has
    /// none.
    pub fn qr_code(&self, text: &str) -> Option<String> {
        fitting_qr_code(text, std::io::stderr()).filter(|_| self.terminal)
    }

    /// Shows one line of progress in place of the last one. In a file it would only be noise.
    pub fn progress(&mut self, text: &str) {
        if self.terminal && !self.quiet {
            write_error(&format!("{CLEAR_LINE}{text}"));
            self.line = true;
        }
    }

    /// Removes the line of progress.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.line) {
            write_error(CLEAR_LINE);
        }
    }

    /// A line that stays.
    pub fn say(&mut self, text: &str) {
        self.clear();
        write_error(&format!("{text}\n"));
    }

    /// A line that stays, unless only results are wanted.
    pub fn remark(&mut self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        self.clear();
    }
}

fn wants_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether standard output is a terminal that shows colours.
pub fn output_has_colour() -> bool {
    std::io::stdout().is_terminal() && wants_colour()
}

pub fn paint(enabled: bool, colour: Colour, text: &str) -> String {
    let code = match colour {
        Colour::Red => "31",
        Colour::Green => "32",
        Colour::Yellow => "33",
        Colour::Bold => "1",
        Colour::Dim => "2",
    };
    if enabled {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// Nothing can be done about a closed standard error.
fn write_error(text: &str) {
    let mut error = std::io::stderr().lock();
    let _closed = error.write_all(text.as_bytes());
    let _closed = error.flush();
}

/// Asks on the terminal, not on standard input, which may belong to something else. An error if
/// there is no terminal.
pub async fn ask(question: &str) -> anyhow::Result<String> {
    ask_on_terminal(question.to_owned(), false).await
}

/// The same, but nothing that was typed before the question is an answer to it: it was meant for
/// the one before.
pub async fn ask_next(question: &str) -> anyhow::Result<String> {
    ask_on_terminal(question.to_owned(), true).await
}

async fn ask_on_terminal(question: String, is_next: bool) -> anyhow::Result<String> {
    let asking = move || {
        let mut options = File::options();
        let terminal = options.read(true).write(true).open("/dev/tty");
        let mut terminal = terminal.context("there is no terminal to ask on")?;
        if is_next {
            tcflush(&terminal, FlushArg::TCIFLUSH)?;
        }
        write!(terminal, "{question} ")?;
        terminal.flush()?;
        let mut answer = String::new();
        BufReader::new(terminal).read_line(&mut answer)?;
        anyhow::Ok(answer.trim().to_owned())
    };
    tokio::task::spawn_blocking(asking).await?
}

/// Whether the answer is yes. Anything else is no.
pub async fn confirm(question: &str) -> anyhow::Result<bool> {
    let answer = ask(&format!("{question} [yes/no]")).await?;
    Ok(answer.eq_ignore_ascii_case("yes"))
}

/// Whether a person has compared the digits of a pairing, which were shown before.
pub async fn confirm_digits(screen: &mut TerminalScreen) -> bool {
    let same = confirm("Does the other screen show the same fifteen digits?").await;
    let same = same.unwrap_or(false);
    if !same {
        screen.say("not paired: the digits were not confirmed. If they differed, someone may be interfering.");
    }
    same
}

/// A QR code, unless the text is very long or the terminal too narrow.
pub fn fitting_qr_code(text: &str, terminal: impl AsFd) -> Option<String> {
    let code = qr_code(text).ok()?;
    let columns = terminal_size_of(terminal);
    let columns = columns.map_or(u16::MAX, |(Width(columns), _)| columns);
    let needed = code.lines().next()?.chars().count();
    (needed <= columns.into()).then_some(code)
}

/// A QR code of two rows per line, dark on light, which every camera reads.
fn qr_code(text: &str) -> anyhow::Result<String> {
    let code = QrCode::with_error_correction_level(text, qrcode::EcLevel::L)?;
    let mut image = code.render::<Dense1x2>();
    let image = (image.dark_color(Dense1x2::Light)).light_color(Dense1x2::Dark);
    Ok(image.quiet_zone(true).build())
}

/// Minutes and seconds, such as `9:58`.
pub fn minutes(time: Duration) -> String {
    let (minutes, seconds) = (time.as_secs() / 60, time.as_secs() % 60);
    match minutes {
        0..60 => format!("{minutes}:{seconds:02}"),
        _ => format!("{}:{:02}:{seconds:02}", minutes / 60, minutes % 60),
    }
}
