//! Leases of sweeps that one node does for all: a row per sweep, taken and kept by one guarded
//! statement each, so that it works through a pooler as well.

use std::time::Duration;

use crate::store::Database;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

impl Database {
    /// Takes a sweep for this node and for `length`, unless another has it. `longest` is the
    /// longest that anyone takes it for: a lease that ends later was written by a clock that has
    /// been set back since.
    pub async fn take_sweep(
        &self,
        sweep: &str,
        length: Duration,
        longest: Duration,
    ) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            insert into sweep_leases as l (sweep, node_id, until)
            values ($1, $2, clock_timestamp() + make_interval(secs => $3))
            on conflict on constraint sweep_leases_pkey do update
               set node_id = excluded.node_id, until = excluded.until
             where l.until <= clock_timestamp() or l.until > clock_timestamp() + make_interval(secs => $4)
            "#,
            sweep,
            self.instance,
            length.as_secs_f64(),
            longest.as_secs_f64(),
        );
        // All: the sweeps belong to no tenant.
        let scope = TenantScope::All;
        Ok(self.background.execute(scope, query).await? > 0)
    }

    /// Keeps a sweep for `length` from now on; false if another node has taken it.
    pub async fn keep_sweep(&self, sweep: &str, length: Duration) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            update sweep_leases
               set until = clock_timestamp() + make_interval(secs => $1)
             where sweep = $2 and node_id = $3
            "#,
            length.as_secs_f64(),
            sweep,
            self.instance,
        );
        // All: the sweeps belong to no tenant.
        let scope = TenantScope::All;
        Ok(self.background.execute(scope, query).await? > 0)
    }
}
