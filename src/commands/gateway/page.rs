//! `countersign page`: the approvers' page as files, for any host of static files; and whether a
//! host serves these.

mod verify;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use countersign::client::parse_url;
use countersign::page::{CACHING, HEADERS, page, policy};
use countersign::protocol::hex;

use self::verify::VerifyArgs;
use crate::commands::output::print_line;

/// By which a page that was written before is recognised.
const GENERATOR: &str = "<meta name=\"generator\" content=\"countersign ";

#[derive(clap::Args)]
pub struct PageArgs {
    /// The directory to write to: new, empty, or with an earlier page.
    #[arg(long, value_name = "DIRECTORY", required_unless_present_any = ["verify", "hash"])]
    out: Option<PathBuf>,
    /// The gateway's address; repeat it for several nodes. By default the page calls its own host.
    #[arg(long, value_name = "URL")]
    gateway: Vec<String>,
    /// Another origin that the page may call, such as the sign-in service in page.oidc. Can be
    /// repeated.
    #[arg(long, value_name = "ORIGIN")]
    connect: Vec<String>,
    /// Write into a directory with other files, and replace those of the same name.
    #[arg(long)]
    force: bool,
    /// Print the hash of the page in this program, which each release states.
    #[arg(long, conflicts_with_all = ["out", "verify"])]
    hash: bool,
    #[command(flatten)]
    verify: VerifyArgs,
}

pub async fn run(args: &PageArgs) -> anyhow::Result<()> {
    if args.hash {
        return print_line(&format!("sha256:{}", hex::encode(&page().hash)));
    }
    let gateways = args.gateway.iter().map(|text| gateway(text));
    let gateways = gateways.collect::<anyhow::Result<Vec<_>>>()?;
    let further = args.connect.iter().map(|text| origin(text));
    let further = further.collect::<anyhow::Result<Vec<_>>>()?;
    let origins = gateways.iter().flat_map(|(_, origins)| origins);
    let policy = policy(origins.chain(&further).map(String::as_str));
    let gateways: Vec<_> = gateways.iter().map(|(url, _)| url.as_str()).collect();

    let page = page();
    let generator = format!("{GENERATOR}{}\">\n", env!("CARGO_PKG_VERSION"));
    let index = page.index_elsewhere(&generator, &gateways, &policy);
    let Some(out) = &args.out else {
        return verify::verify(&args.verify, &index).await;
    };
    let is_ours = prepare(out, args.force)?;
    let directory = out.join("page").join(&page.version);
    for (name, file) in &page.versioned {
        put(&directory.join(name), &file.content)?;
    }
    for (name, file) in &page.fixed {
        put(&out.join(name), &file.content)?;
    }
    // Last, so that it never names what is not there yet.
    put(&out.join("index.html"), index.as_bytes())?;
    if is_ours {
        remove_others(&out.join("page"), &page.version)?;
    }
    explain(out, &policy, gateways.is_empty())
}

/// An address whose origin can be named in the policy.
fn address(text: &str) -> anyhow::Result<reqwest::Url> {
    let url = parse_url(text, false)?;
    let host = url.host_str().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
    anyhow::ensure!(
        host.bytes().all(is_plain),
        "{text}: expected a host name or an address"
    );
    Ok(url)
}

/// An origin that the page connects to.
fn origin(text: &str) -> anyhow::Result<String> {
    let origin = address(text)?.origin().ascii_serialization();
    anyhow::ensure!(
        text.trim_end_matches('/') == origin,
        "{text}: expected an origin such as {origin}, without a path"
    );
    Ok(origin)
}

/// An address as the page is told, and the origins that it connects to for it.
fn gateway(text: &str) -> anyhow::Result<(String, [String; 2])> {
    let url = address(text)?;
    let origin = url.origin().ascii_serialization();
    let socket = origin.replacen("http", "ws", 1);
    let url = url.as_str().trim_end_matches('/').replace('&', "&amp;");
    Ok((url, [origin, socket]))
}

/// Whether there is a page of ours already. Refuses to mix it with other files.
fn prepare(out: &Path, force: bool) -> anyhow::Result<bool> {
    let written = || format!("cannot write to {}", out.display());
    fs::create_dir_all(out).with_context(written)?;
    let is_empty = fs::read_dir(out).with_context(written)?.next().is_none();
    let index = fs::read_to_string(out.join("index.html")).unwrap_or_default();
    let is_ours = index.contains(GENERATOR);
    anyhow::ensure!(
        is_empty || is_ours || force,
        "{} has other files; choose an empty directory, or add --force",
        out.display()
    );
    Ok(is_ours)
}

/// Replaces a file as a whole, so that nobody is served a part of it.
fn put(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let part = path.with_extension("part");
    let writing = || {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(&part, content)?;
        fs::rename(&part, path)
    };
    writing().with_context(|| format!("cannot write {}", path.display()))
}

/// Removes the files of other versions.
fn remove_others(directory: &Path, version: &str) -> anyhow::Result<()> {
    let removing = || {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_version = name.to_str().is_some_and(|name| {
                name.len() == version.len() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
            });
            if is_version && name != version {
                fs::remove_dir_all(entry.path())?;
            }
        }
        io::Result::Ok(())
    };
    removing().with_context(|| format!("cannot remove old files in {}", directory.display()))
}

fn explain(out: &Path, policy: &str, is_own_host: bool) -> anyhow::Result<()> {
    let page = page();
    let [for_good, ask_again] = CACHING;
    print_line(&format!(
        "wrote version {} of the page to {}\n\nServe it with these headers:\n",
        page.version,
        out.display()
    ))?;
    print_line(&format!("content-security-policy: {policy}"))?;
    for (name, value) in HEADERS {
        print_line(&format!("{name}: {value}"))?;
    }
    print_line(&format!(
        "cache-control: {ask_again}\ncache-control: {for_good}   (below page/, instead)"
    ))?;
    if !is_own_host {
        print_line(
            "\nThe gateway must list the page's origin in server.origins; page.url makes its links lead to the page.",
        )?;
    }
    Ok(())
}
