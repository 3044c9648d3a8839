//! The command line. The only place for `anyhow`, and for printing to standard output.

#![forbid(unsafe_code)]

mod commands;
#[cfg(feature = "dev")]
mod dev;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = commands::Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let outcome = runtime.block_on(commands::run(cli));
    // Does not wait: a pending read of standard input may never end.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the error is for the person who ran the command"
)]
fn fail(error: &anyhow::Error) -> ExitCode {
    let mut text = error.to_string();
    // Many errors already include their cause, which must not be repeated.
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    eprintln!("countersign: {text}");
    ExitCode::FAILURE
}
