//! `dev`: its options on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use countersign::config::Config;

use super::serve::parse_listen;
use crate::commands::signals;
use crate::dev::{self, DevOptions, LanChoice};

#[derive(Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct DevArgs {
    /// The address of the first node; the others use the ports after it. A port alone means
    /// 127.0.0.1, port 0 free ports.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// How many nodes to run, each as a process.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// Where to keep PostgreSQL's data, the demo credentials and the profiles of this demo.
    #[arg(long, conflicts_with = "ephemeral")]
    data_dir: Option<PathBuf>,
    /// Keep the data in a temporary directory and remove it at the end.
    #[arg(long)]
    ephemeral: bool,
    /// Print the demo's API keys, and how to use the API with them.
    #[arg(long)]
    keys: bool,
    /// Refuse what docker-compose.yml and the other deployments refuse by default.
    #[arg(long)]
    strict: bool,
    /// Serve the local network too, over TLS, so that a phone can open the page; on the only
    /// private address, or on this one. The port is 8443, and the one after it explains to a
    /// phone how to trust the certificate.
    #[arg(long, value_name = "ADDRESS[:PORT]", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    lan: Option<LanChoice>,
    /// Delete the data directory, and the demo's roles in your profiles; ask first.
    #[arg(long, conflicts_with_all = ["ephemeral", "keys", "strict", "lan", "nodes", "listen", "ready_file"])]
    reset: bool,
    /// Do not ask before --reset deletes.
    #[arg(long, requires = "reset")]
    yes: bool,
    /// A JSON file with addresses and keys, written once every node is ready.
    #[arg(long)]
    ready_file: Option<PathBuf>,
}

pub async fn run(
    args: DevArgs,
    config: Config,
    config_file: Option<PathBuf>,
    database_url: Option<String>,
) -> anyhow::Result<()> {
    if args.reset {
        anyhow::ensure!(
            database_url.is_none(),
            "--reset deletes the private database only; drop a database of your own yourself"
        );
        return dev::reset(args.data_dir, args.yes).await;
    }
    anyhow::ensure!(
        args.listen.ip().is_loopback(),
        "dev serves plain HTTP, on loopback only: use --listen 127.0.0.1:{}, and --lan for phones",
        args.listen.port()
    );
    let options = DevOptions {
        listen: args.listen,
        nodes: args.nodes,
        data_dir: args.data_dir,
        ephemeral: args.ephemeral,
        keys: args.keys,
        strict: args.strict,
        lan: args.lan,
        ready_file: args.ready_file,
        config_file,
        database_url,
    };
    dev::run(options, config, signals::stop_signals()?).await
}
