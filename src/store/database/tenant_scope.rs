//! The tenants of a call, stated whenever a connection is taken. With row-level security the database then shows the rows of
//! those tenants and no others.

use std::collections::BTreeSet;

use crate::protocol::id::TenantId;

/// The setting for every tenant.
const EVERY_TENANT: &str = "*";

#[derive(Debug, Clone)]
pub enum TenantScope<'a> {
    Tenant(&'a TenantId),
    Tenants(BTreeSet<&'a TenantId>),
    /// Every tenant: for sweeps, and for reads before the tenant is known.
    All,
}

impl<'a> From<&'a TenantId> for TenantScope<'a> {
    fn from(tenant: &'a TenantId) -> Self {
        Self::Tenant(tenant)
    }
}

impl<'a> TenantScope<'a> {
    pub fn of(tenants: impl IntoIterator<Item = &'a TenantId>) -> Self {
        Self::Tenants(tenants.into_iter().collect())
    }

    /// One tenant, or every tenant if none is named. Spelled out, so that a missing tenant never widens a scope by accident.
    pub fn one_or_all(tenant: Option<&'a TenantId>) -> Self {
        tenant.map_or(Self::All, Self::Tenant)
    }

    /// The value of the database's setting. Each id ends with a newline, which no id contains, so that a tenant named `*` is
    /// not taken for all.
    pub(in crate::store) fn setting(&self) -> String {
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
