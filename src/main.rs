//! The command line. The only place for `anyhow`, and for printing to standard output.

#![forbid(unsafe_code)]

mod commands;
#[cfg(feature = "dev")]
mod dev;

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

use countersign::agent::BLOCK;
use countersign::client::visible_lines;

use crate::commands::ExitAction;

/// Its background threads return freed memory while the node is idle. After mixed abuse a node kept
/// 313 MiB with glibc's allocator, 159 with mimalloc, and under 48 with this one.
#[cfg(feature = "gateway")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if let Some(answered) = commands::answer_shell() {
        return answered.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let cli = commands::Cli::read();
    let is_hook = cli.is_hook();
    let ended = catch_unwind(AssertUnwindSafe(|| start(cli)));
    match ended {
        Ok(Ok(code)) => code,
        // Agents take other statuses for permission.
        Ok(Err(error)) if is_hook => {
            fail(&error);
            ExitCode::from(BLOCK)
        }
        Ok(Err(error)) => fail(&error),
        Err(_) if is_hook => ExitCode::from(BLOCK),
        Err(panic) => resume_unwind(panic),
    }
}

fn start(cli: commands::Cli) -> anyhow::Result<ExitCode> {
    let mut builder = if cli.is_client() {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = builder.enable_all().build()?;
    let outcome = runtime.block_on(commands::run(cli));
    // Does not wait: a pending read of standard input may never end.
    runtime.shutdown_background();
    match outcome? {
        ExitAction::Code(code) => Ok(code),
        ExitAction::Become(mut command) => {
            // Returns only if it fails.
            let error = anyhow::Error::new(command.exec());
            fail(&error.context(format!("{}", command.get_program().display())));
            Ok(ExitCode::from(commands::DENIED))
        }
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let mut text = error.to_string();
    // Many errors already include their cause, which must not be repeated.
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    // It may repeat what a gateway or a file says.
    let _lost = writeln!(io::stderr(), "countersign: {}", visible_lines(&text));
    ExitCode::from(commands::code_of(error))
}
