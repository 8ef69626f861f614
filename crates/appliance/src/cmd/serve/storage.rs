//! Shares and the services on them: interim until vfs and serve are merged.

use std::net::SocketAddr;
use std::sync::Arc;

use control::appliance::{Access, ActingAs, ShareStatus};
use control::state::StateDir;
use probe::hub::Hub;

use super::announce::{mount_command, nfs3_url};
use super::plan::Plan;
use crate::out::Failure;

/// What is served, and by whom.
pub struct Storage {
    share: ShareStatus,
    nfs: SocketAddr,
}

impl Storage {
    /// Starts it.
    pub fn start(plan: &Plan, _: &StateDir, _: [u8; 32], _: &Arc<Hub>) -> Result<Self, Failure> {
        let nfs = plan.nfs;
        let name = String::from_utf8_lossy(&plan.share).into_owned();
        let access = Access {
            protocol: "nfs3".into(),
            url: nfs3_url(nfs, &plan.share),
            mount: mount_command(nfs, &name),
            note: None,
        };
        let share = ShareStatus {
            name,
            dir: plan.dir.display().to_string(),
            read_only: plan.read_only,
            total_bytes: 0,
            available_bytes: 0,
            access: vec![access],
        };
        Ok(Self { share, nfs })
    }
    /// All shares.
    pub fn shares(&self) -> Vec<ShareStatus> {
        vec![self.share.clone()]
    }
    /// Where NFS listens.
    pub fn nfs(&self) -> SocketAddr {
        self.nfs
    }
    /// With whose rights.
    pub fn acting_as(&self) -> ActingAs {
        ActingAs { privileged: false, user: String::new(), note: String::new() }
    }
    /// Ends the services.
    pub fn drain(&self) {}
    /// Closes the shares.
    pub fn close(&self) {}
}
