//! What `countersign dev` prints once it is up: where it is, the keys, and a first exchange to paste.

use std::path::Path;

use super::DevOptions;
use super::demo::{APPROVER, Demo, ENFORCER};
use super::nodes::Nodes;

#[expect(
    clippy::print_stdout,
    reason = "this is what the person at the terminal came for"
)]
pub fn print(
    nodes: &Nodes,
    demo: &Demo,
    database_url: &str,
    data_dir: &Path,
    options: &DevOptions,
) {
    let url = nodes.urls().first().map_or("", String::as_str);
    let kept = match (options.ephemeral, &options.database_url) {
        (true, None) => "removed at the end",
        (true, Some(_)) => "removed at the end; what is in your database stays",
        (false, _) => "kept for the next run",
    };
    let included = match options.database_url {
        None => ", PostgreSQL included",
        Some(_) => "",
    };
    println!(
        r#"
Countersign is up. Ctrl-C stops it{included}.

  nodes      {urls}
  metrics    {metrics}
  database   {database_url}
  data       {data_dir} ({kept})
  tenant     {tenant}
  operator   {operator}
  admin      {admin}
  enforcer   {enforcer}   (may act as any enforcer, say {ENFORCER})
  approver   {approver}   (may act as any approver, say {APPROVER})

A first exchange: paste this into another terminal, then look into the approver's inbox.

  export URL={url} ENFORCER_KEY={enforcer} APPROVER_KEY={approver}
  export REQUEST=$(cat /proc/sys/kernel/random/uuid) EXPIRES=$(date -u -d '+1 hour' +%FT%TZ)

  curl -sS $URL/v1/artifacts -H "Authorization: Bearer $ENFORCER_KEY" -H 'Content-Type: application/json' -d '{{
    "msgType": "artifact.submit", "requestId": "'$REQUEST'", "createdAt": "'$(date -u +%FT%TZ)'",
    "sender": {{"enforcerId": "{ENFORCER}"}}, "recipient": {{"approverId": "{APPROVER}"}},
    "body": {{"artifactType": "command.review", "expiresAt": "'$EXPIRES'",
      "artifactHash": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      "ciphertext": {{"alg": "A256GCM", "data": "c2VhbGVk"}}}}}}'

  curl -sS $URL/v1/approvers/{APPROVER}/inbox -H "Authorization: Bearer $APPROVER_KEY"
"#,
        urls = nodes.urls().join(" "),
        metrics = match nodes.metrics() {
            [] => "nowhere".to_owned(),
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
