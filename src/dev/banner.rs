//! The output of `countersign dev` once it is ready: ten lines, the link last. `--keys` and `--lan`
//! print more before it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::data_dir::DataDir;
use super::demo::{APPROVER, DemoAccounts, ENFORCER, INVITED};
use super::first_steps::FirstSteps;
use super::lan::LanService;
use super::nodes::DevNodes;
use super::options::DevOptions;
use crate::commands::terminal::fitting_qr_code;

pub struct StartBanner<'a> {
    pub options: &'a DevOptions,
    pub data_dir: &'a DataDir,
    pub demo: &'a DemoAccounts,
    pub nodes: &'a DevNodes,
    pub steps: &'a FirstSteps,
    pub lan: Option<&'a LanService>,
    pub database_url: &'a str,
    /// Whether the invitation can be opened in a browser.
    pub has_page: bool,
}

impl StartBanner<'_> {
    #[expect(clippy::print_stdout, reason = "it is the output of the command")]
    pub fn print(&self) {
        if self.options.keys {
            println!("{}", self.keys());
        }
        for line in self.lines() {
            println!("{line}");
        }
    }

    /// The same for programs: `--ready-file`.
    pub fn ready(&self) -> Value {
        let (demo, nodes, steps) = (self.demo, self.nodes, self.steps);
        let lan = self.lan.map(|lan| {
            json!({
                "url": lan.url(),
                "trustPage": lan.trust_page,
                "ca": lan.authority.file,
                "fingerprint": lan.authority.fingerprint(),
            })
        });
        json!({
            "nodes": nodes.urls,
            "metrics": nodes.metrics,
            "pids": nodes.pids(),
            "databaseUrl": self.database_url,
            "tenantId": demo.tenant_id,
            "operator": { "apiKey": demo.operator },
            "admin": { "apiKey": demo.admin },
            "enforcer": { "id": ENFORCER, "apiKey": demo.enforcer },
            "approver": { "id": APPROVER, "apiKey": demo.approver },
            "invitation": steps.invitation,
            "profile": steps.profile.name,
            "profiles": steps.profile.directory,
            "log": self.data_dir.log_file(),
            "lan": lan,
        })
    }

    fn lines(&self) -> Vec<String> {
        let (steps, data_dir) = (self.steps, self.data_dir);
        let urls = self.nodes.urls.join(" ");
        let included = match self.options.database_url {
            None => ", PostgreSQL included",
            Some(_) => "",
        };
        let strict = if self.options.strict { ", strict" } else { "" };
        let kept = match (self.options.ephemeral, &self.options.database_url) {
            (true, None) => "removed at the end",
            (true, Some(_)) => "removed at the end; your database is not",
            (false, _) => "kept for the next run",
        };
        let metrics = match self.nodes.metrics.as_slice() {
            [] => "off".to_owned(),
            urls => urls.join(" "),
        };
        let profile = steps.profile.name.map(|name| format!(" --profile {name}"));
        let profile = profile.unwrap_or_default();
        let ask = match &steps.problem {
            None => format!("countersign run{profile} -- echo hello"),
            Some(problem) => format!("not with `countersign run`, which has no profile: {problem}"),
        };
        let path = &data_dir.path;
        let place =
            if data_dir.is_usual || self.options.data_dir.is_none() && !self.options.ephemeral {
                String::new()
            } else {
                format!(" --data-dir {}", path.display())
            };
        let mut lines = vec![
            format!("Countersign is running at {urls}{strict}. Ctrl-C stops it{included}."),
            format!("  data           {} ({kept})", path.display()),
            format!("  log            {}", data_dir.log_file().display()),
            format!("  metrics        {metrics}"),
            format!(
                "  keys           {} (--keys prints them)",
                data_dir.demo_file().display()
            ),
        ];
        if let Some(setup) = self.terminal_setup() {
            lines.push(format!("  first paste    {setup}"));
        }
        lines.push(format!("  an agent asks  {ask}"));
        lines.push(format!(
            "  another link   countersign invite {INVITED}{place}"
        ));
        if let Some(lan) = self.lan {
            lines.extend(phone_steps(lan, &steps.invitation));
        }
        let effect = if steps.has_joined {
            format!("\"{INVITED}\" has joined, and this adds a device")
        } else {
            format!("you become the approver \"{INVITED}\"")
        };
        let way = match (self.has_page, self.lan) {
            (true, None) => "Open this link in a browser",
            (true, Some(_)) => "Or open this link in a browser that trusts the certificate",
            (false, _) => "In a terminal, give this link to `countersign join`",
        };
        lines.push(format!("{way}; {effect}:"));
        lines.push(steps.invitation.clone());
        lines
    }

    /// What a terminal needs so that the commands work as they are printed.
    fn terminal_setup(&self) -> Option<String> {
        let path = directory_to_add();
        let path = path.map(|it| format!("PATH=\"{}:$PATH\"", it.display()));
        let profiles = self.steps.profile.directory.as_ref();
        let profiles = profiles.map(|it| format!("COUNTERSIGN_PROFILES=\"{}\"", it.display()));
        let all: Vec<_> = path.into_iter().chain(profiles).collect();
        (!all.is_empty()).then(|| format!("export {}", all.join(" ")))
    }

    fn keys(&self) -> String {
        let demo = self.demo;
        format!(
            r#"  database   {database_url}
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

Then follow "A first exchange by hand" in docs/api.md, which uses these variables. The API is described at {url}/docs
"#,
            database_url = self.database_url,
            url = self.nodes.urls.first().map_or("", String::as_str),
            tenant = demo.tenant_id,
            operator = demo.operator,
            admin = demo.admin,
            enforcer = demo.enforcer,
            approver = demo.approver,
        )
    }
}

fn phone_steps(lan: &LanService, invitation: &str) -> Vec<String> {
    // Without a code the address and the link are still there.
    let code = |text: &str| fitting_qr_code(text, std::io::stdout()).unwrap_or_default();
    vec![
        String::new(),
        format!(
            "On a phone in the same network, open {} (the first code) and trust the certificate; compare its fingerprint:",
            lan.trust_page
        ),
        format!("  {}", lan.authority.fingerprint()),
        code(&lan.trust_page),
        format!("Then scan the second code, which opens {}:", lan.url()),
        code(invitation),
    ]
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
