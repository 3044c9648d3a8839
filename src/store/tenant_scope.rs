//! For which tenants a call is. Whoever borrows a connection says so; under row-level security the database then shows
//! it the rows of those tenants and no others, whatever its statement asks for.

use std::collections::BTreeSet;

use crate::protocol::id::TenantId;

/// What the database is told where a call is for every tenant.
const EVERY_TENANT: &str = "*";

#[derive(Debug, Clone)]
pub enum TenantScope<'a> {
    Tenant(&'a TenantId),
    Tenants(BTreeSet<&'a TenantId>),
    /// Every tenant: what sweeps over all, or is asked before the tenant is known.
    All,
}

impl<'a> TenantScope<'a> {
    pub fn of(tenants: impl IntoIterator<Item = &'a TenantId>) -> Self {
        Self::Tenants(tenants.into_iter().collect())
    }

    /// One tenant, or every one where none is named.
    #[must_use]
    pub fn of_any(tenant: Option<&'a TenantId>) -> Self {
        tenant.map_or(Self::All, Self::Tenant)
    }

    /// What the database is told. Every name ends a line, so that a tenant that is called `*` is not taken for all of
    /// them; ids hold no control characters.
    pub(super) fn setting(&self) -> String {
        match self {
            Self::Tenant(tenant) => format!("{tenant}\n"),
            Self::Tenants(tenants) => tenants
                .iter()
                .flat_map(|tenant| [tenant.as_str(), "\n"])
                .collect(),
            Self::All => EVERY_TENANT.to_owned(),
        }
    }
}
