//! The state of a head, for the local socket.

use super::Supervisor;
use crate::lease;
use crate::local::{ResourceStatus, Status};

impl Supervisor {
    /// The state now.
    pub(super) fn status(&self) -> Status {
        let now = lease::now();
        let left = self.machine.lease_until().and_then(|until| until.checked_sub(now));
        let view = self.machine.view().map(|(_, view)| view);
        let members = view.into_iter().flat_map(|view| &view.members);
        let resources = self.machine.resources().iter();
        Status {
            head: self.config.name.clone(),
            cluster: self.config.cluster.clone(),
            lease_s: left.map(|left| format!("{:.3}", left.as_secs_f64())),
            etcd: self.etcd.clone(),
            draining: self.machine.is_draining(),
            pending: self.machine.has_targets(),
            members: members.map(|(name, member)| (name.clone(), member.value.draining)).collect(),
            resources: resources.map(|(name, _)| self.resource_status(name)).collect(),
        }
    }

    fn resource_status(&self, name: &str) -> ResourceStatus {
        let Some(resource) = self.machine.resources().get(name) else {
            return ResourceStatus::default();
        };
        let view = self.machine.view().map(|(_, view)| view);
        let owner = view.and_then(|view| view.owners.get(name));
        let record = view.and_then(|view| view.records.get(name));
        let running = self.running.get(name);
        let configured = self.config.resource(name);
        let address = configured.map(|one| one.address.to_string());
        let directory = configured.map(|one| one.directory.display().to_string());
        ResourceStatus {
            name: name.to_owned(),
            state: resource.state().to_owned(),
            owner: owner.map(|owner| owner.value.head.clone()),
            target: record.map(|record| record.value.target.clone()),
            preferred: self.machine.preferred(name).unwrap_or_default().to_owned(),
            number: record.map_or(0, |record| record.value.number),
            address: address.unwrap_or_default(),
            directory: directory.unwrap_or_default(),
            why: resource.why.clone(),
            cut: resource.cut.clone(),
            pid: running.and_then(|running| running.process.as_ref()?.pid()),
            takeover_ms: running.and_then(|running| running.took_ms),
            last: record.and_then(|record| record.value.last.clone()),
        }
    }
}
