//! Connections and sign-ins of the services that transfer files, once a second.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::NS_PER_S;
use probe::sample::{Sample, Sampler};
use vfs::share::Service;

use super::{FileService, dav};

/// Reads what the services count.
pub struct Levels {
    services: Vec<Counted>,
}

/// A service, and what it had counted at a time.
struct Counted {
    service: Arc<FileService>,
    before: Option<([u64; 2], u64)>,
}

impl Levels {
    /// Those of these services.
    pub fn new(services: &[Arc<FileService>]) -> Self {
        let counted =
            |service: &Arc<FileService>| Counted { service: service.clone(), before: None };
        Self { services: services.iter().map(counted).collect() }
    }
}

impl Sampler for Levels {
    fn sample(&mut self, now_ns: u64) -> Vec<Sample> {
        self.services.iter_mut().flat_map(|one| one.sample(now_ns)).collect()
    }
}

/// Its statistics: connections, sign-ins, and those refused.
fn names(service: Service) -> [&'static str; 3] {
    match service {
        Service::Ftp => ["ftp.connections", "ftp.logins", "ftp.failures"],
        Service::Sftp => ["sftp.connections", "sftp.logins", "sftp.failures"],
        Service::Http => ["http.connections", "http.logins", "http.failures"],
    }
}

impl Counted {
    fn sample(&mut self, now_ns: u64) -> Vec<Sample> {
        let FileService { files, door, .. } = &*self.service;
        let [connections, logins, failures] = names(files.service);
        let open = files.budgets.connections().max(0) as f64;
        let mut samples = vec![Sample::raw(connections, open)];
        samples.extend(self.service.protocol.locks().map(dav::level));
        let now = [door.logins.load(Relaxed), door.failures.load(Relaxed)];
        let Some((before, then_ns)) = self.before.replace((now, now_ns)) else { return samples };
        let seconds = now_ns.saturating_sub(then_ns) as f64 / NS_PER_S as f64;
        if seconds > 0.0 {
            let rate = |at: usize| now[at].saturating_sub(before[at]) as f64 / seconds;
            samples.extend([Sample::raw(logins, rate(0)), Sample::raw(failures, rate(1))]);
        }
        samples
    }
}
