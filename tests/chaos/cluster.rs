//! Everything that runs: PostgreSQL with its standby, three nodes, the balancer, and the tenant
//! that clients belong to.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::calls::Keys;
use super::commands;
use super::database::{Database, NAME};
use super::nodes::{Balancer, COUNT, Node, countersign};

pub struct Cluster {
    pub database: Database,
    pub nodes: Vec<Node>,
    pub keys: Keys,
    balancer: Balancer,
    pub directory: TempDir,
}

impl Cluster {
    pub async fn start(with_patroni: bool) -> anyhow::Result<Self> {
        // PostgreSQL's user must be able to enter it.
        let directory = tempfile::Builder::new().prefix("chaos").tempdir()?;
        let open = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(directory.path(), open)?;
        let database = Database::start(directory.path(), with_patroni).await?;
        let url = database.primary().url(NAME, NAME);
        countersign(&url, &["migrate"]).await?;
        let tenant = countersign(&url, &["tenant", "create", "chaos"]).await?;
        let key = async |role: &str, bound: &[&str]| {
            let create = ["credential", "create", "--tenant", &tenant, "--role", role];
            countersign(&url, &[&create, bound].concat()).await
        };
        let keys = Keys {
            // One credential stands for all enforcers, one for all approvers.
            enforcer: key("enforcer", &["--unbound"]).await?,
            approver: key("approver", &["--unbound"]).await?,
            admin: key("admin", &[]).await?,
            bot: key("enforcer", &["--bound-id", commands::ENFORCER]).await?,
            person: key("approver", &["--bound-id", commands::APPROVER]).await?,
            tenant: tenant.clone(),
        };
        let mut nodes = Vec::new();
        for number in 0..COUNT {
            let port = database.port(number);
            nodes.push(Node::new(number, port, directory.path()).await?);
        }
        for node in &mut nodes {
            node.start().await?;
        }
        let balancer = Balancer::start(&nodes, directory.path())?;
        Ok(Self {
            database,
            nodes,
            keys,
            balancer,
            directory,
        })
    }

    /// Where clients enter: the balancer, then each node.
    pub fn entrances(&self) -> Vec<String> {
        let balancer = format!("http://127.0.0.1:{}", self.balancer.port);
        let nodes = self.nodes.iter().map(Node::url);
        std::iter::once(balancer).chain(nodes).collect()
    }

    /// Waits, and starts nodes again that end by themselves meanwhile.
    pub async fn hold(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for node in &mut self.nodes {
                node.revive()?;
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Has all links lead to the primary.
    pub fn lead_to_primary(&self) {
        let port = self.database.primary().port;
        for node in &self.nodes {
            node.link.lead_to(port);
            node.listen_link.lead_to(port);
        }
    }

    /// Copies the logs to a directory.
    pub fn keep_logs(&self, to: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(self.directory.path())? {
            let path = entry?.path();
            if let (Some("log"), Some(name)) = (
                path.extension().and_then(|end| end.to_str()),
                path.file_name(),
            ) {
                std::fs::copy(&path, to.join(name))?;
            }
        }
        Ok(())
    }
}
