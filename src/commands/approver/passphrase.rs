//! `passphrase`: encrypts the keys of this device. A file can supply the passphrase, for scripts. A
//! reader of that file and the profile has the keys.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use countersign::client::ClientError;
use countersign::client::approver::Approver;
use countersign::client::profile::{ProfileError, ProfileFile, read_passphrase};
use countersign::clock::Clock;
use zeroize::Zeroizing;

use crate::commands::client_options::ClientOptions;
use crate::commands::exit_action::ExitAction;
use crate::commands::output::remark;

pub const EXAMPLES: &str = "\
Examples:
  countersign passphrase                 set a new one; you type it twice
  countersign passphrase --remove        store the keys unencrypted again
Without a terminal, COUNTERSIGN_PASSPHRASE_FILE names a file whose first line is the passphrase.";

const VARIABLE: &str = "COUNTERSIGN_PASSPHRASE_FILE";

#[derive(Args)]
pub struct PassphraseArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// Store the keys unencrypted again.
    #[arg(long)]
    remove: bool,
    /// Read the new passphrase from the first line of this file.
    #[arg(long, value_name = "FILE", conflicts_with = "remove")]
    new_file: Option<PathBuf>,
}

pub fn run(args: &PassphraseArgs) -> anyhow::Result<ExitAction> {
    let approver = open(&args.options.file()?)?;
    if args.remove {
        approver.set_passphrase(None)?;
        remark(
            "the keys are no longer encrypted: anyone who can read the profile can approve in your name",
        );
        return Ok(ExitAction::DONE);
    }
    let new = match &args.new_file {
        Some(file) => read_passphrase(file)?,
        None => chosen()?,
    };
    approver.set_passphrase(Some(&new))?;
    remark(
        "the keys are encrypted. A forgotten passphrase can't be recovered. Earlier copies of the profile still hold unencrypted keys.",
    );
    Ok(ExitAction::DONE)
}

/// Opens a profile, and asks for its passphrase if it has one.
pub fn open(file: &ProfileFile) -> anyhow::Result<Approver> {
    let named = std::env::var_os(VARIABLE);
    let opened = Approver::open_with(file, &Clock::system(), || current(named));
    Ok(opened?)
}

fn current(named: Option<OsString>) -> Result<Zeroizing<String>, ClientError> {
    match named {
        Some(path) => Ok(read_passphrase(Path::new(&path))?),
        None => prompted("Passphrase: ").map_err(|_| ProfileError::Sealed.into()),
    }
}

fn prompted(question: &str) -> std::io::Result<Zeroizing<String>> {
    rpassword::prompt_password(question).map(Zeroizing::new)
}

fn chosen() -> anyhow::Result<Zeroizing<String>> {
    let problem = |_| ClientError::Choice("there is no terminal to ask on; use --new-file");
    let new = prompted("New passphrase: ").map_err(problem)?;
    let again = prompted("Repeat it: ").map_err(problem)?;
    anyhow::ensure!(
        *new == *again,
        ClientError::Choice("the two passphrases differ; nothing was changed")
    );
    Ok(new)
}
