//! `passphrase`: the keys of this device under a passphrase. A file of it can be named, for programs and tests of one's own; whoever reads
//! that file and the profile has the keys.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use countersign::client::ClientError;
use countersign::client::approver::Approver;
use countersign::client::profile::{ProfileError, ProfileFile};
use countersign::clock::Clock;
use zeroize::Zeroizing;

use crate::commands::client::ClientOptions;
use crate::commands::ending::Ending;
use crate::commands::remark;

pub const EXAMPLES: &str = "\
Examples:
  countersign passphrase                 asks for a new one, twice
  countersign passphrase --remove        keeps the keys in plain again
Where there is no terminal, COUNTERSIGN_PASSPHRASE_FILE names a file whose first line is the passphrase.";

const VARIABLE: &str = "COUNTERSIGN_PASSPHRASE_FILE";

#[derive(Args)]
pub struct PassphraseArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// Keep the keys in plain again.
    #[arg(long)]
    remove: bool,
    /// Take the new passphrase from the first line of this file.
    #[arg(long, value_name = "FILE", conflicts_with = "remove")]
    new_file: Option<PathBuf>,
}

pub fn run(args: &PassphraseArgs) -> anyhow::Result<Ending> {
    let approver = open(&args.options.file()?)?;
    if args.remove {
        approver.protect(None)?;
        remark("the keys are in plain again: whoever reads the profile can decide in your name");
        return Ok(Ending::DONE);
    }
    let new = match &args.new_file {
        Some(file) => first_line(file)?,
        None => chosen()?,
    };
    approver.protect(Some(&new))?;
    remark(
        "the keys are under the passphrase. There is no way to recover it; copies of the profile from before still have the keys in plain",
    );
    Ok(Ending::DONE)
}

/// Opens a profile, and asks for its passphrase if it has one.
pub fn open(file: &ProfileFile) -> anyhow::Result<Approver> {
    let named = std::env::var_os(VARIABLE);
    let opened = Approver::open_with(file, &Clock::system(), || current(named));
    Ok(opened?)
}

fn current(named: Option<OsString>) -> Result<Zeroizing<String>, ClientError> {
    match named {
        Some(path) => first_line(Path::new(&path)).map_err(|_| {
            ClientError::Choice("COUNTERSIGN_PASSPHRASE_FILE names no file that can be read")
        }),
        None => prompted("Passphrase: ").map_err(|_| ProfileError::Sealed.into()),
    }
}

fn first_line(path: &Path) -> anyhow::Result<Zeroizing<String>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let text = Zeroizing::new(text);
    let line = text.lines().next().unwrap_or_default();
    Ok(Zeroizing::new(line.to_owned()))
}

fn prompted(question: &str) -> std::io::Result<Zeroizing<String>> {
    rpassword::prompt_password(question).map(Zeroizing::new)
}

fn chosen() -> anyhow::Result<Zeroizing<String>> {
    let problem = "there is no terminal to ask on; give --new-file";
    let new = prompted("New passphrase: ").context(problem)?;
    let again = prompted("The same again: ").context(problem)?;
    anyhow::ensure!(
        *new == *again,
        ClientError::Choice("the two differ; nothing was changed")
    );
    Ok(new)
}
