//! An agent that only observes: it makes no load, and shows a controller the server of its machine.
//! Its owner starts it as one (`--observe`); other agents show nothing.

use super::Origin;
use super::proto::FromAgent;
use crate::observe::{LocalServer, ObservedTarget};
use std::path::PathBuf;

/// What the owner of an agent that observes states.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObserveOptions {
    /// Where the data of the share is; `None`: found by the server's open files.
    pub share_path: Option<PathBuf>,
}

/// Observes for one controller.
pub(super) struct Observing {
    options: Option<ObserveOptions>,
    server: Option<LocalServer>,
}

impl Observing {
    pub(super) fn new(origin: &Origin) -> Self {
        let options = match origin {
            Origin::Own => None,
            Origin::Tcp(allowed) => allowed.observe.clone(),
        };
        Self { options, server: None }
    }

    /// Begins with another server.
    pub(super) fn observe(&mut self, target: &ObservedTarget) -> FromAgent {
        let Some(options) = &self.options else {
            return failed("this agent does not observe; start it with --observe");
        };
        match LocalServer::find(target, options.share_path.as_deref()) {
            Ok(server) => {
                let answer = FromAgent::Observing { server: Box::new(server.identity.clone()) };
                self.server = Some(server);
                answer
            }
            Err(why) => failed(&format!("the server is not observed: {why}")),
        }
    }

    /// Its counters now.
    pub(super) fn sample(&mut self) -> FromAgent {
        let sample = self.server.as_mut().and_then(LocalServer::sample);
        FromAgent::Sample { sample: sample.map(Box::new) }
    }

    /// Takes its test files out of the page cache.
    pub(super) fn drop_cache(&mut self) -> FromAgent {
        let none = || "no server is observed".to_owned();
        match self.server.as_mut().ok_or_else(none).and_then(LocalServer::drop_cache) {
            Ok(dropped) => FromAgent::Dropped { dropped: Box::new(dropped) },
            Err(why) => failed(&why),
        }
    }
}

fn failed(what: &str) -> FromAgent {
    FromAgent::Failed { what: what.to_owned() }
}

#[cfg(test)]
mod tests;
