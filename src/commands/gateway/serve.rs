//! `serve`: one node, until it is stopped.

use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use countersign::app::App;
use countersign::clock::Clock;
use countersign::config::{Config, TlsMode};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::AsyncReadExt as _;

use crate::commands::signals::stop_signals;

#[derive(Args)]
pub struct ServeArgs {
    /// The address to listen on, instead of server.listen; a port alone means 127.0.0.1.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    listen: Option<SocketAddr>,
    /// Write the node's URL to this file once it is ready, and its metrics' URL on a second line.
    #[arg(long, hide = true)]
    ready_file: Option<PathBuf>,
    /// Serve metrics on a free port if theirs is taken.
    #[arg(long, hide = true)]
    any_metrics_port: bool,
    /// Stop when standard input ends, because the parent process is gone.
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

/// A port alone means loopback, where a node serves without TLS.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse()
        .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:8080".to_owned())
}

pub async fn serve(mut config: Config, args: ServeArgs) -> anyhow::Result<()> {
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    config.telemetry.takes_other_port = args.any_metrics_port;
    for variable in Config::unknown_variables() {
        tracing::warn!(variable, "this variable is not a setting and is ignored");
    }
    // Each channel takes a file descriptor, and the usual soft limit is 1,024.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let stop = stop_signals()?;
    if args.stop_with_stdin {
        let stop = stop.clone();
        tokio::spawn(async move {
            let mut byte = [0];
            while tokio::io::stdin()
                .read(&mut byte)
                .await
                .is_ok_and(|count| count > 0)
            {}
            stop.cancel();
        });
    }
    let scheme = match config.tls.mode {
        TlsMode::On => "https",
        TlsMode::Off | TlsMode::Upstream => "http",
    };
    // It waits for a database that is away.
    let building = App::build(config, Clock::system());
    let Some(app) = stop.run_until_cancelled(Box::pin(building)).await else {
        return Ok(());
    };
    let app = app?;
    if let Some(file) = args.ready_file {
        let part = file.with_extension("part");
        let metrics = app.metrics_address();
        let metrics = metrics.map(|address| format!("\nhttp://{address}"));
        let text = format!(
            "{scheme}://{}{}",
            app.address(),
            metrics.unwrap_or_default()
        );
        // A link that somebody else left there is not followed.
        let _absent = std::fs::remove_file(&part);
        File::create_new(&part)?.write_all(text.as_bytes())?;
        tokio::fs::rename(&part, &file).await?;
    }
    app.run(stop).await;
    Ok(())
}
