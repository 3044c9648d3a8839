//! The schema's version: applied by `migrate`, only checked by nodes.

use sqlx::Connection;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgConnection;

use super::Store;
use super::error::StoreError;

/// The migrations that this binary was built with.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Whether a node can work on the schema it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// It is the one this binary knows, or one version ahead (expand, deploy, contract).
    Known,
    /// Migrations are missing.
    Behind,
    /// More than one version ahead of this binary.
    Ahead,
}

/// Applies the migrations that are missing.
pub async fn migrate(url: &str) -> Result<(), MigrateError> {
    let mut connection = PgConnection::connect(url)
        .await
        .map_err(MigrateError::Execute)?;
    MIGRATIONS.run(&mut connection).await
}

impl Store {
    /// Compares the schema of the database with the one this binary knows.
    pub async fn schema(&self) -> Result<Schema, StoreError> {
        let mut lease = self.quiet.lease().await?;
        // The table belongs to the migrations and is missing before the first, so this query is not checked against it.
        let applied: Result<Vec<i64>, _> = sqlx::query_scalar(
            "select version from _sqlx_migrations where success order by version",
        )
        .fetch_all(lease.connection()?)
        .await;
        let applied = match lease.settle(applied) {
            Ok(applied) => applied,
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P01") => {
                Vec::new()
            }
            Err(error) => return Err(error.into()),
        };
        let known: Vec<i64> = MIGRATIONS
            .iter()
            .map(|migration| migration.version)
            .collect();
        let unknown = applied
            .iter()
            .filter(|version| !known.contains(version))
            .count();
        Ok(if known.iter().any(|version| !applied.contains(version)) {
            Schema::Behind
        } else if unknown > 1 {
            Schema::Ahead
        } else {
            Schema::Known
        })
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let mut lease = self.quiet.lease().await?;
        let answered = sqlx::query_scalar!(r#"select 1 as "one!""#)
            .fetch_one(lease.connection()?)
            .await;
        lease.settle(answered)?;
        Ok(())
    }
}
