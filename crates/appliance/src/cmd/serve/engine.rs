//! Statistics of the running server: interim until the query engine is merged.

use std::sync::Arc;

use control::appliance::{Ask, AskError, Engine, Feed, JsonText};
use control::state::StateDir;
use probe::hub::Hub;

use super::storage::Storage;
use crate::out::Failure;

/// The statistics engine.
pub struct Statistics {
    hub: Arc<Hub>,
}

impl Statistics {
    /// Starts it.
    pub fn start(_state: &StateDir, hub: &Arc<Hub>, _storage: &Storage) -> Result<Self, Failure> {
        Ok(Self { hub: hub.clone() })
    }

    /// Ends it.
    pub fn end(&self) {}
}

impl Engine for Statistics {
    fn statistics(&self) -> JsonText {
        "[]".into()
    }
    fn data(&self, ask: &Ask) -> Result<JsonText, AskError> {
        let failed = format!("there is no statistic {}", ask.stat);
        Err(AskError::Wrong { failed, hint: String::new() })
    }
    fn subscribe(&self, _stats: &[String]) -> Result<Box<dyn Feed>, AskError> {
        Err(AskError::Failed("no statistics yet".into()))
    }
    fn recorder(&self) -> JsonText {
        "{}".into()
    }
    fn set_collect(&self, on: bool) {
        self.hub.set_collect(on);
    }
}
