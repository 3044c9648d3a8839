//! The command line. The only place for `anyhow`, and for printing to standard output.

#![forbid(unsafe_code)]

mod commands;
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
    // Not waited for: a read of standard input may be under way that nothing will ever end.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the last words of a command are for the person who ran it"
)]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("countersign: {error:#}");
    ExitCode::FAILURE
}
