//! The statistics of the running server: collector, store and queries put together.

use std::path::PathBuf;
use std::sync::Arc;

use analytics::collect::Collector;
use analytics::query::Engine;
use analytics::store::{Retention, Store};
use base::failure::Failure;
use control::state::{StateDir, effective_uid};
use host::Root;
use host::bridges::BridgeSampler;
use host::sampler::HostSampler;
use parking_lot::Mutex;
use probe::hub::Hub;

use crate::nfs::clients::Levels;
use crate::storage::Storage;

/// The statistics of the running server.
pub struct Statistics {
    queries: Arc<Engine>,
    collector: Mutex<Option<Collector>>,
}

impl Statistics {
    /// Opens the store and starts to collect each second; emulated links have their control sockets
    /// in `links`.
    ///
    /// # Errors
    /// If the store cannot be used or there is no thread for the collector.
    pub fn start(
        state: &StateDir,
        hub: &Arc<Hub>,
        storage: &Storage,
        links: PathBuf,
    ) -> Result<Self, Failure> {
        let tried = "keep statistics";
        let store = Store::open(&state.file("stats"), Retention::default())
            .map_err(|e| Failure::of(tried, &e))?;
        let names = Arc::new(storage.names());
        let queries = Engine::new(hub.clone(), names, Some(store));
        let samplers: Vec<Box<dyn probe::sample::Sampler>> = vec![
            Box::new(HostSampler::new(Root::default())),
            Box::new(BridgeSampler::new(links, effective_uid())),
            storage.keeper(),
            Box::new(Levels::new(&storage.services.nfs)),
            Box::new(storage.services.levels()),
        ];
        let collector =
            Collector::start(queries.clone(), samplers).map_err(|e| Failure::of(tried, &e))?;
        Ok(Self { queries, collector: Mutex::new(Some(collector)) })
    }

    /// Writes the last seconds down.
    pub fn end(&self) {
        let collector = self.collector.lock().take();
        collector.into_iter().for_each(Collector::stop);
        self.queries.close();
    }

    /// The engine itself.
    pub fn queries(&self) -> &Arc<Engine> {
        &self.queries
    }
}
