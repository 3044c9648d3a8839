//! The roles of `deploy/roles.sql`, made by the script itself in a test's database. Roles belong to
//! the whole server, so every test has its own.

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::config::{Config, Secret};
use sqlx::{Connection as _, PgConnection};

use super::database::Database;

/// Where PostgreSQL's programs are.
fn programs() -> &'static str {
    static WHERE: OnceLock<String> = OnceLock::new();
    WHERE.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/with-postgres");
        let output = Command::new(script)
            .arg("--where")
            .output()
            .expect("it runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}

/// An owner, an application and a reader, in one database.
pub struct Roles {
    database: Database,
    /// The user that runs the script.
    administrator: String,
    number: usize,
}

impl Roles {
    /// Makes them; the reader for these tenants.
    pub async fn make(database: &Database, tenants: &str) -> Self {
        Self::made_by("countersign", database, tenants).await
    }

    /// The same, as another role.
    pub async fn made_by(administrator: &str, database: &Database, tenants: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        // The script writes catalogues that the whole server shares.
        static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let _turn = TURN.lock().await;
        let roles = Self {
            database: database.clone(),
            administrator: administrator.to_owned(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        };
        roles.run(tenants);
        roles
    }

    /// Runs the script, once more.
    pub fn run(&self, tenants: &str) {
        // The clock of a test may be ahead of the server's, which alone counts for the floors.
        self.run_keeping(tenants, "-100 years");
    }

    /// The same, with history and audit kept for this long at least.
    pub fn run_keeping(&self, tenants: &str, keep: &str) {
        let output = Command::new(format!("{}/psql", programs()))
            .args(["-X", "-q"])
            .args(["-v", &format!("owner={}", self.name("owner"))])
            .args(["-v", &format!("application={}", self.name("application"))])
            .args(["-v", &format!("reader={}", self.name("reader"))])
            .args(["-v", &format!("tenants={tenants}")])
            .args(["-v", &format!("keep_history={keep}")])
            .args(["-v", &format!("keep_audit={keep}")])
            .args([
                "-f",
                concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/roles.sql"),
            ])
            .arg(self.url_as(&self.administrator))
            .output()
            .expect("psql runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
    }

    /// A role's name.
    pub fn name(&self, role: &str) -> String {
        format!("test_{role}_{}", self.number)
    }

    /// The database's URL for a role.
    pub fn url(&self, role: &str) -> String {
        self.url_as(&self.name(role))
    }

    fn url_as(&self, name: &str) -> String {
        let user = format!("{name}@");
        self.database.url.replacen("countersign@", &user, 1)
    }

    /// A connection as a role.
    pub async fn connect(&self, role: &str) -> PgConnection {
        PgConnection::connect(&self.url(role))
            .await
            .expect("a connection")
    }

    /// Lets a node connect as the application.
    pub fn confine(&self, config: &mut Config) {
        config.database.url = Secret::from(self.url("application").as_str());
        config.database.row_security = true;
    }

    /// Takes the roles off the server, and with the owner its tables.
    pub async fn remove(self) {
        for role in ["reader", "application", "owner"] {
            let name = self.name(role);
            let sql = format!("drop owned by {name} cascade; drop role {name}");
            self.database.run(&sql).await;
        }
    }
}
