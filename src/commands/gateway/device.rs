//! The devices of approvers on the command line. Only an approver's own devices can add and revoke
//! single ones.

use clap::Subcommand;
use countersign::gateway::identity::administration::AdminService;

use super::administer::{ApproverArgs, found};
use crate::commands::output::{print_list, remark};

#[derive(Subcommand)]
pub enum DeviceCommand {
    /// List an approver's devices.
    List {
        #[command(flatten)]
        approver: ApproverArgs,
    },
    /// Reset an approver who has lost every device: revokes them, and lets the next one join as the
    /// first. Enforcers trust it only after pairing again.
    Reset {
        #[command(flatten)]
        approver: ApproverArgs,
    },
}

pub async fn device(
    administration: &AdminService,
    command: DeviceCommand,
    json: bool,
) -> anyhow::Result<()> {
    match command {
        DeviceCommand::List { approver } => {
            let (tenant, approver) = approver.parse(administration).await?;
            let devices = administration.devices(&tenant, &approver).await?;
            print_list(json, &devices, |device| {
                let revoked = device.revoked_at.map_or("", |_| "  (revoked)");
                format!("{}  {}{revoked}", device.device_id, device.name)
            })
        }
        DeviceCommand::Reset { approver } => {
            let (tenant, approver) = approver.parse(administration).await?;
            let reset = administration.reset_devices(&tenant, &approver).await;
            found(
                reset,
                &format!("{approver} has no device and no signing key"),
            )?;
            remark("reset");
            Ok(())
        }
    }
}
