//! All services of the program, made in one place. A new service is its module and one line here.

use std::sync::Arc;

use base::failure::{Failure, OrFailure};
use base::protocol::ShareMode;
use base::refusals;
use control::certificates::Certificates;
use control::tree::{Document, Override};
use probe::sample::{Sample, Sampler};
use serve::transport::tls::{Offer, Tls};
use vfs::share::rules::Rules;

#[cfg(feature = "test-services")]
use crate::echo::Echo;
use crate::files::ftp::Ftp;
use crate::files::http::Http;
use crate::files::sftp::Sftp;
use crate::files::smb::Smb;
use crate::instance::{Condition, Instance, Service};
use crate::iscsi::Iscsi;
use crate::nfs::Nfs;
use crate::node::is_enabled;
use crate::parts::ServiceParts;
use crate::tls::TlsChoice;

/// The services, in the order of the registry.
pub struct Services {
    /// All of them.
    pub all: Vec<Arc<Instance>>,
    /// NFS; its clients can be listed and expired.
    pub nfs: Arc<Nfs>,
    /// HTTP; its WebDAV locks can be listed and released.
    pub http: Arc<Http>,
    /// iSCSI; its logical units are announced.
    pub iscsi: Arc<Iscsi>,
}

impl Services {
    /// None of them started yet. `nfs_given` is what the command line decides of NFS.
    ///
    /// # Errors
    /// TLS cannot be offered, or a file of the state directory not be read.
    pub fn new(
        parts: &Arc<ServiceParts>,
        nfs_given: Vec<Override>,
        document: &Document,
        certificates: &Arc<Certificates>,
    ) -> Result<Self, Failure> {
        let shown = TlsChoice::default().read(certificates)?;
        let offer = |offer| Tls::offering(&shown, offer).or_failure("offer TLS to clients");
        let nfs = Nfs::new(parts, nfs_given, document, certificates)?;
        let ftp = Ftp::new(parts, offer(Offer::FTP)?, document);
        let sftp = Sftp::new(parts, document)?;
        let http = Http::new(parts, offer(Offer::HTTP)?, certificates, document)?;
        let iscsi = Arc::new(Iscsi::new(parts));
        let smb = Smb::new(parts, document)?;
        let services: [Arc<dyn Service>; base::protocol::Service::ALL.len()] = [
            nfs.clone(),
            Arc::new(ftp),
            Arc::new(sftp),
            http.clone(),
            iscsi.clone(),
            Arc::new(smb),
            #[cfg(feature = "test-services")]
            Arc::new(Echo::new(parts, document)),
        ];
        let instance = |service| Instance::new(service, parts.at, document, certificates);
        let all = services.into_iter().map(instance).collect::<Result<_, _>>()?;
        Ok(Self { all, nfs, http, iscsi })
    }

    /// Starts the enabled services. A service that fails to start is in maintenance and does not
    /// prevent the start of the others.
    /// from the others.
    ///
    /// # Errors
    /// One that must start cannot.
    pub fn start(&self, document: &Document) -> Result<(), Failure> {
        for instance in &self.all {
            if !is_enabled(instance, document) {
                instance.stop(Condition::Disabled("disabled in the configuration".to_owned()));
                continue;
            }
            match instance.start() {
                Err(failure) if instance.service().must_start() => return Err(failure),
                Err(failure) => base::error!(instance.name(), "{}", failure.why()),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Stops all at once: they take no more requests, and answer those that were taken.
    pub fn drain(&self) {
        std::thread::scope(|scope| {
            for instance in &self.all {
                scope.spawn(|| instance.stop(Condition::Offline));
            }
        });
    }

    /// What is wrong with them, one sentence each.
    pub fn problems(&self, certificates: &Certificates) -> Vec<String> {
        let state = |instance: &Arc<Instance>| match instance.condition() {
            Condition::Maintenance(why) => {
                Some(format!("{} is in maintenance: {why}", instance.title()))
            }
            _ => None,
        };
        let certificate = |instance: &Arc<Instance>| instance.certificate(certificates)?.1;
        let states = self.all.iter().filter_map(state);
        states.chain(self.all.iter().filter_map(certificate)).collect()
    }

    /// Certificates may be others: what is wrong with those that are shown now.
    pub fn renew_tls(&self, certificates: &Certificates) -> Vec<Failure> {
        self.all.iter().filter_map(|instance| instance.renew_tls(certificates).err()).collect()
    }

    /// Whether certificates or keys are files, which may be read again.
    pub fn use_files(&self) -> bool {
        self.all.iter().any(|instance| instance.tls().any_file())
    }

    /// Refuses export rules that no client can satisfy.
    ///
    /// # Errors
    /// They require certificates of clients, and no CA for them is configured.
    pub fn check_rules(&self, rules: &Rules) -> Result<(), Failure> {
        let by_export =
            |instance: &&Arc<Instance>| instance.service().id().shares() == Some(ShareMode::Export);
        self.all.iter().filter(by_export).try_for_each(|instance| instance.tls().check(rules))
    }

    /// Connections, sign-ins, and levels of their own, once a second.
    pub fn levels(&self) -> Levels {
        let services = self.all.iter().map(|instance| (instance.clone(), [0; 2])).collect();
        Levels { services, refusals: Vec::new() }
    }
}

/// Reads what the services count.
pub struct Levels {
    /// With each, the sign-ins that were reported.
    services: Vec<(Arc<Instance>, [u64; 2])>,
    /// Requests that were refused at each limit, as reported.
    refusals: Vec<u64>,
}

impl Levels {
    /// Requests that were refused since the last reading, by the limit.
    fn refused(&mut self) -> Sample {
        let (names, now): (Vec<_>, Vec<_>) = refusals::counts().unzip();
        let before = std::mem::replace(&mut self.refusals, now);
        let since = self.refusals.iter().zip(before.into_iter().chain(std::iter::repeat(0)));
        let new = since.map(|(now, before)| now.saturating_sub(before) as f64);
        let rows: Vec<_> = names.into_iter().zip(new).filter(|(_, new)| *new > 0.0).collect();
        Sample {
            stat: "server.limits_reached",
            dimensions: ["limit", ""],
            total: rows.iter().map(|(_, new)| new).sum(),
            rows: rows.into_iter().map(|(n, new)| (n.to_owned(), String::new(), new)).collect(),
        }
    }
}

impl Sampler for Levels {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        let one = |(instance, reported): &mut (Arc<Instance>, [u64; 2])| {
            let (service, row) = (instance.service(), instance.service().id());
            let open = service.budgets().connections().max(0) as f64;
            let mut samples = vec![Sample::raw(row.connections(), open)];
            samples.extend(service.samples());
            if let Some(now) = service.sign_ins() {
                // Events, each reported once: not rates over the time between two readings, which
                // is never quite a second.
                let new = [0, 1].map(|at| now[at].saturating_sub(reported[at]) as f64);
                *reported = now;
                samples.extend([0, 1].map(|at| Sample::raw(row.sign_ins()[at], new[at])));
            }
            samples
        };
        let mut samples: Vec<_> = self.services.iter_mut().flat_map(one).collect();
        samples.push(self.refused());
        samples
    }

    fn begin(&mut self, _now_ns: u64) {}
}
