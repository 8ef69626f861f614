//! Connections and sign-ins of the services that transfer files, once a second.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use probe::sample::{Sample, Sampler};

use super::{FileService, dav};

/// Reads what the services count.
pub struct Levels {
    services: Vec<Counted>,
}

/// A service, and what it had counted in the seconds that are told.
struct Counted {
    service: Arc<FileService>,
    told: [u64; 2],
}

impl Levels {
    /// Those of these services.
    pub fn new(services: &[Arc<FileService>]) -> Self {
        let counted =
            |service: &Arc<FileService>| Counted { service: service.clone(), told: [0; 2] };
        Self { services: services.iter().map(counted).collect() }
    }
}

impl Sampler for Levels {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        self.services.iter_mut().flat_map(Counted::sample).collect()
    }

    fn begin(&mut self, _now_ns: u64) {}
}

impl Counted {
    fn sample(&mut self) -> Vec<Sample> {
        let FileService { files, door, .. } = &*self.service;
        let [logins, failures] = files.service.sign_ins();
        let open = files.budgets.connections().max(0) as f64;
        let mut samples = vec![Sample::raw(files.service.connections(), open)];
        samples.extend(self.service.protocol.locks().map(dav::level));
        // Events, each told once: not rates over the time between two readings, which is never
        // quite a second.
        let now = [door.logins.load(Relaxed), door.failures.load(Relaxed)];
        let [allowed, refused] = [0, 1].map(|at| now[at].saturating_sub(self.told[at]) as f64);
        self.told = now;
        samples.extend([Sample::raw(logins, allowed), Sample::raw(failures, refused)]);
        samples
    }
}
