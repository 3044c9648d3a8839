//! The schema's version, and row-level security: `migrate` applies migrations, nodes only check.

use std::time::Duration;

use sqlx::Connection;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgConnection;
use tokio::time::sleep;

use crate::jitter::jitter;
use crate::store::Database;
use crate::store::database::connect::{basic_options, cannot_connect};
use crate::store::database::pool::ConnectionPool;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::{Result, StoreError};

/// The migrations that this binary was built with.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// It is the one this binary knows, or one version ahead (expand, deploy, contract).
    Known,
    Behind,
    Ahead,
}

/// How the configuration fits the role that connects, which row-level security binds or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSecurity {
    /// On for a role that is bound by it, or off for one that is not.
    Fits,
    /// Off for a role that is bound: it could read and write nothing.
    Missing,
    /// On for a role that is not bound: it has no effect.
    Idle,
}

impl RowSecurity {
    pub const MISSING: &str = "the role that connects does not own the tables, so that row-level security hides every row \
                               from it; set database.row_security = true, or connect as the tables' owner";
    pub const IDLE: &str = "database.row_security is on, but keeps nothing apart: the role that connects owns tables or \
                            bypasses row-level security; connect as the application role of deploy/roles.sql";
}

/// Why the migrations could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
}

/// How often a migration is tried that a lock stood in the way of, and the pause before each further time.
const ATTEMPTS: usize = 60;
const RETRY_INTERVAL: Duration = Duration::from_secs(4);

/// Applies the migrations that are missing, giving way to transactions that hold a lock for long.
pub async fn migrate(url: &str) -> Result<(), MigrationError> {
    for _ in 1..ATTEMPTS {
        match try_to_migrate(url).await {
            Err(error) if waited_too_long(&error) => {
                tracing::warn!(%error, "a migration waited too long for a lock and will be retried");
                sleep(jitter(RETRY_INTERVAL)).await;
            }
            outcome => return outcome,
        }
    }
    try_to_migrate(url).await
}

/// On a connection of its own: one whose migration failed still has the lock that keeps others from migrating.
async fn try_to_migrate(url: &str) -> Result<(), MigrationError> {
    let options = basic_options(url, "countersign-migrate").map_err(StoreError::from)?;
    let mut connection = PgConnection::connect_with(&options)
        .await
        .map_err(|error| cannot_connect(&options, &error))?;
    // Statements that come after a migration that waits for a table wait behind it: not for as long as a node waits for locks.
    sqlx::query("set lock_timeout = '1s'")
        .execute(&mut connection)
        .await
        .map_err(StoreError::from)?;
    drop_unfinished_indexes(&mut connection).await?;
    let outcome = MIGRATIONS.run(&mut connection).await;
    drop(connection.close().await);
    Ok(outcome?)
}

/// An index that was not built to its end is never used, and would keep the migration from building it
/// again.
async fn drop_unfinished_indexes(connection: &mut PgConnection) -> Result<()> {
    let drops = sqlx::query_scalar!(
        r#"
        select format('drop index concurrently %s', x.indexrelid::regclass) as "drop!"
          from pg_index x
          join pg_class c on c.oid = x.indexrelid
         where not x.indisvalid and c.relnamespace = current_schema()::regnamespace
           and c.relname = 'exchange_events_at'
        "#,
    );
    for text in drops.fetch_all(&mut *connection).await? {
        sqlx::query(sqlx::AssertSqlSafe(text))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

fn waited_too_long(error: &MigrationError) -> bool {
    match error {
        MigrationError::Migrate(
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _),
        ) => error
            .as_database_error()
            .is_some_and(|error| error.code().as_deref() == Some("55P03")),
        _ => false,
    }
}

async fn writable(pool: &ConnectionPool) -> Result<bool> {
    let query =
        sqlx::query!(r#"select current_setting('transaction_read_only') = 'off' as "writable!""#);
    // All: no row is read.
    Ok(pool.fetch_one(TenantScope::All, query).await?.writable)
}

async fn require_writable(pool: &ConnectionPool) -> Result<()> {
    if writable(pool).await? {
        return Ok(());
    }
    Err(StoreError::ReadOnly("transactions are read-only".into()))
}

impl Database {
    /// Compares the schema of the database with the one this binary knows.
    pub async fn schema(&self) -> Result<SchemaState> {
        let applied = self.applied_migrations().await?;
        let known: Vec<i64> = MIGRATIONS
            .iter()
            .map(|migration| migration.version)
            .collect();
        let unknown = applied
            .iter()
            .filter(|version| !known.contains(version))
            .count();
        Ok(if known.iter().any(|version| !applied.contains(version)) {
            SchemaState::Behind
        } else if unknown > 1 {
            SchemaState::Ahead
        } else {
            SchemaState::Known
        })
    }

    /// The migrations that the database lacks, by number and name.
    pub async fn missing_migrations(&self) -> Result<Vec<String>> {
        let applied = self.applied_migrations().await?;
        Ok(MIGRATIONS
            .iter()
            .filter(|migration| !applied.contains(&migration.version))
            .map(|migration| format!("{} ({})", migration.version, migration.description))
            .collect())
    }

    async fn applied_migrations(&self) -> Result<Vec<i64>> {
        // All: the schema belongs to no tenant.
        let mut lease = self.background.lease(TenantScope::All).await?;
        // Not checked at compile time: the table belongs to the migrations and is missing before the first.
        let query = sqlx::query_scalar(
            "select version from _sqlx_migrations where success order by version",
        );
        let applied = query.fetch_all(lease.connection()?);
        let applied = self.background.within(applied).await;
        match lease.settle(applied) {
            Ok(applied) => Ok(applied),
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P01") => {
                Ok(Vec::new())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Compares whether row-level security binds the role that connects with what is configured. A missing schema fits.
    pub async fn row_security(&self) -> Result<RowSecurity> {
        let query = sqlx::query!(
            r#"
            select coalesce(bool_or(t.bound), false) as "bound!", coalesce(bool_or(not t.bound), false) as "free!"
              from (select row_security_active(c.oid) as bound
                      from pg_class c
                     where c.relrowsecurity
                       and c.relnamespace = (select x.relnamespace from pg_class x where x.oid = to_regclass('exchanges'))
                   ) t
            "#
        );
        // All: the catalogue belongs to no tenant.
        let row = self.background.fetch_one(TenantScope::All, query).await?;
        Ok(match self.background.row_security() {
            false if row.bound => RowSecurity::Missing,
            true if row.free => RowSecurity::Idle,
            _ => RowSecurity::Fits,
        })
    }

    /// Whether the database accepts writes, which a standby does not.
    pub async fn writable(&self) -> Result<bool> {
        writable(&self.background).await
    }

    /// The schema, if within `limit` both pools reach a server that takes writes. `None` if it is busy with other calls.
    pub async fn probe(&self, limit: Duration) -> Result<Option<SchemaState>> {
        let background = async {
            require_writable(&self.background).await?;
            self.schema().await
        };
        let (schema, requests) = tokio::join!(
            self.background.check(limit, background),
            self.pool.check(limit, require_writable(&self.pool))
        );
        requests?;
        schema
    }
}
