//! Joins the statistics engine to the API: collector, store and queries behind `control`'s trait.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use analytics::collect::Collector;
use analytics::query::{Engine as Queries, Query, QueryError, Source, Subscription, Update};
use analytics::store::{Retention, Store};
use control::appliance::{Ask, AskError, AskSource, Engine, Feed, Heard, JsonText};
use control::state::{StateDir, effective_uid};
use host::Root;
use host::bridges::BridgeSampler;
use host::sampler::HostSampler;
use probe::hub::Hub;
use probe::stat::StatId;

use crate::failure::{Failure, chain};
use crate::nfs::clients::Levels;
use crate::storage::Storage;

/// The statistics of the running server.
pub struct Statistics {
    queries: Arc<Queries>,
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
        let queries = Queries::new(hub.clone(), names, Some(store));
        let samplers: Vec<Box<dyn probe::sample::Sampler>> = vec![
            Box::new(HostSampler::new(Root::default())),
            Box::new(BridgeSampler::new(links, effective_uid())),
            storage.keeper(),
            Box::new(Levels::new(&storage.services().nfs)),
            Box::new(storage.services().levels()),
        ];
        let collector =
            Collector::start(queries.clone(), samplers).map_err(|e| Failure::of(tried, &e))?;
        Ok(Self { queries, collector: Mutex::new(Some(collector)) })
    }

    /// Writes the last seconds down.
    pub fn end(&self) {
        let collector = self.collector.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(collector) = collector {
            collector.stop();
        }
        self.queries.close();
    }

    /// The engine itself.
    pub fn queries(&self) -> &Arc<Queries> {
        &self.queries
    }
}

impl Engine for Statistics {
    fn statistics(&self) -> JsonText {
        text(&Queries::statistics())
    }

    fn data(&self, ask: &Ask) -> Result<JsonText, AskError> {
        let stat = parse(&ask.stat)?;
        let query = Query {
            from: ask.from,
            to: ask.to,
            step: u64::try_from(ask.step).unwrap_or(1),
            top: ask.top,
            source: ask.source.map(|source| match source {
                AskSource::Store => Source::Store,
                AskSource::Recorder => Source::Recorder,
            }),
        };
        self.queries.data(&stat, &query).map(|data| text(&data)).map_err(|e| refusal(&e))
    }

    fn subscribe(&self, stats: &[String]) -> Result<Box<dyn Feed>, AskError> {
        let stats = stats.iter().map(|stat| parse(stat)).collect::<Result<Vec<_>, _>>()?;
        let subscription = self.queries.subscribe(stats).map_err(|e| refusal(&e))?;
        Ok(Box::new(Live { subscription, next: None }))
    }

    fn recorder(&self) -> JsonText {
        text(&self.queries.recorder())
    }

    fn set_collect(&self, on: bool) {
        self.queries.hub().set_collect(on);
    }
}

/// A live subscription; a loss is told before the second that follows it.
struct Live {
    subscription: Subscription,
    next: Option<Update>,
}

impl Feed for Live {
    fn next(&mut self, wait: Duration) -> Heard {
        let update = self.next.take().or_else(|| self.subscription.recv_timeout(wait));
        match update {
            None => Heard::Nothing,
            Some(update) if update.lost > 0 => {
                let lost = update.lost;
                self.next = Some(Update { lost: 0, ..update });
                Heard::Lost(lost)
            }
            Some(update) => Heard::Second(update.data.iter().map(text).collect()),
        }
    }
}

fn parse(stat: &str) -> Result<StatId, AskError> {
    stat.parse().map_err(|e| refusal(&QueryError::Stat(e)))
}

fn refusal(error: &QueryError) -> AskError {
    match error {
        QueryError::Stat(_) => AskError::Wrong {
            failed: chain(error),
            hint: "GET /api/v1/analytics/statistics lists what there is".to_owned(),
        },
        QueryError::Interval(_) => AskError::Wrong {
            failed: chain(error),
            hint: "from must be before to; negative times count back from now".to_owned(),
        },
        QueryError::Busy | QueryError::Store(_) => AskError::Failed(chain(error)),
    }
}

fn text(value: &impl serde::Serialize) -> JsonText {
    // Numbers and strings in structures: cannot fail.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
