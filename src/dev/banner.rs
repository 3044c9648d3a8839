//! What `countersign dev` prints once it is ready: addresses, keys, and what to do next.

use std::path::Path;

use super::DevOptions;
use super::demo::Demo;
use super::nodes::Nodes;

#[expect(clippy::print_stdout, reason = "it is the output of the command")]
pub fn print(
    nodes: &Nodes,
    demo: &Demo,
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
    println!(
        r#"
Countersign is running. Ctrl-C stops it{included}.

  nodes      {urls}
  metrics    {metrics}
  database   {database_url}
  data       {data_dir} ({kept})
  tenant     {tenant}
  operator   {operator}
  admin      {admin}
  enforcer   {enforcer}   (UNBOUND)
  approver   {approver}   (UNBOUND)

WARNING: these demo keys are UNBOUND. Whoever has one can act as EVERY enforcer or EVERY approver of the tenant. Use them on
this machine only; for real use, make keys with `countersign credential create --bound-id`, each for one id.

Next, paste this into another terminal; it prints the gateway's status:

  export URL={url}
  export ADMIN_KEY={admin}
  export ENFORCER_KEY={enforcer}
  export APPROVER_KEY={approver}
  curl -sS -w '\n' "$URL/v1/status"

Then go on there with "A first exchange" in README.md, which uses these variables. The API is described at {url}/docs
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
