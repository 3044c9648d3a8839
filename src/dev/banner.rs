//! The output of `countersign dev` once it is ready: addresses, keys and first steps.

use std::path::{Path, PathBuf};

use super::demo::{DemoAccounts, INVITED};
use super::first_steps::FirstSteps;
use super::nodes::DevNodes;
use super::options::DevOptions;

#[expect(clippy::print_stdout, reason = "it is the output of the command")]
pub fn print(
    steps: &FirstSteps,
    nodes: &DevNodes,
    demo: &DemoAccounts,
    database_url: &str,
    data_dir: &Path,
    options: &DevOptions,
) {
    let url = nodes.urls.first().map_or("", String::as_str);
    let kept = match (options.ephemeral, &options.database_url) {
        (true, None) => "removed at the end",
        (true, Some(_)) => "removed at the end; your database is not",
        (false, _) => "kept for the next run",
    };
    let included = match options.database_url {
        None => ", PostgreSQL included",
        Some(_) => "",
    };
    println!("\nCountersign is running. Ctrl-C stops it{included}. Try it:\n");
    for (meaning, command) in first_steps(steps) {
        println!("  {meaning}:\n    {command}");
    }
    if let Some(problem) = &steps.problem {
        println!("\nWithout a profile `countersign run` does not work: {problem}");
    }
    println!(
        r#"
  nodes      {urls}
  metrics    {metrics}
  database   {database_url}
  data       {data_dir} ({kept})
  tenant     {tenant}
  operator   {operator}
  admin      {admin}
  enforcer   {enforcer}   (UNBOUND)
  approver   {approver}   (UNBOUND)

WARNING: these demo keys are UNBOUND. A holder of one can act as EVERY enforcer or EVERY approver of the tenant. Use them on
this machine only; for real use, make keys with `countersign credential create --bound-id`, each for one id.

To use the API by hand, paste this into another terminal; it prints the gateway's status:

  export URL={url}
  export ADMIN_KEY={admin}
  export ENFORCER_KEY={enforcer}
  export APPROVER_KEY={approver}
  curl -sS -w '\n' "$URL/v1/status"

Then go on there with "A first exchange by hand" in docs/api.md, which uses these variables. The API is described at {url}/docs
"#,
        urls = nodes.urls.join(" "),
        metrics = match nodes.metrics.as_slice() {
            [] => "off".to_owned(),
            urls => urls.join(" "),
        },
        data_dir = data_dir.display(),
        tenant = demo.tenant_id,
        operator = demo.operator,
        admin = demo.admin,
        enforcer = demo.enforcer,
        approver = demo.approver,
    );
}

/// The first steps, each with its link or command.
fn first_steps(steps: &FirstSteps) -> Vec<(String, String)> {
    let path = directory_to_add().map(|directory| {
        let meaning = "In another terminal, so that `countersign` is found".to_owned();
        let command = format!("export PATH=\"{}:$PATH\"", directory.display());
        (meaning, command)
    });
    let effect = if steps.has_joined {
        format!("\"{INVITED}\" has joined; this adds a device")
    } else {
        format!("you become the approver \"{INVITED}\"")
    };
    let link = &steps.invitation;
    let open = (
        format!("Open this link in a browser; {effect}"),
        link.clone(),
    );
    let profile = steps.profile.map(|name| format!(" --profile {name}"));
    let profile = profile.unwrap_or_default();
    let run = (
        "In another terminal an agent asks you; the first time it prints a link to pair with it"
            .to_owned(),
        format!("countersign run{profile} -- echo hello"),
    );
    let join = format!("countersign join '{link}'");
    if steps.has_page {
        let join = ("Or be the approver in a terminal".to_owned(), join);
        [open].into_iter().chain(path).chain([run, join]).collect()
    } else {
        let join = (format!("In a terminal {effect}"), join);
        path.into_iter().chain([join, run]).collect()
    }
}

/// Where this program is, unless a shell finds it without that.
fn directory_to_add() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    let places = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&places)
        .find_map(|place| place.join("countersign").canonicalize().ok());
    let directory = own.parent().map(Path::to_owned);
    directory.filter(|_| found.as_ref() != Some(&own))
}
