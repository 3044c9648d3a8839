//! `log restart`: a new epoch of the log, on the command line.

use anyhow::Context as _;
use countersign::config::Config;
use countersign::gateway::log::builder::LogBuilder;

use super::administer::{administration, open_store, optional_tenant};
use crate::commands::output::remark;

pub async fn restart(config: &Config, tenant: Option<String>) -> anyhow::Result<()> {
    let administration = administration(config).await?;
    let tenants = if let Some(tenant) = optional_tenant(&administration, tenant).await? {
        vec![tenant]
    } else {
        let tenants = administration.tenants().await?.into_iter();
        tenants.map(|tenant| tenant.tenant_id).collect()
    };
    let builder = LogBuilder::open(&config.log, &open_store(config)?);
    let builder = builder.context("there is no log: log.key_file is not set")?;
    for tenant in tenants {
        match builder.restart(&tenant).await? {
            Some(epoch) => remark(&format!(
                "tenant {tenant}: the log begins again, as epoch {epoch}"
            )),
            None => remark(&format!("tenant {tenant}: there is no log yet")),
        }
    }
    Ok(())
}
