//! How the server of a run is seen: by an agent on its host, by its API, or as processes of this
//! machine, whatever its address and network namespace.

use super::agents::AgentsError;
use super::roster::{Roster, RosterError};
use super::server::{QueriedServer, ServerSample, ServerView, Unseen, info, observed};
use super::{RunOptions, agents::Source};
use crate::agent::clock::{self, Exchange, Offset};
use crate::agent::connection::Connection;
use crate::agent::proto::{self, FromAgent, ProtoError, ToAgent};
use crate::client::Target;
use crate::observe::{Identity, LocalServer, ObservedTarget};
use crate::record::ServerInfo;
use crate::record::cold::DropReport;
use base::limits::LAB_AGENT_REPLY_MAX;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Exchanges by which the clock of an agent is compared.
const PINGS: u64 = 8;
/// How long dropping cached data may take: it is written back first.
const DROP_WITHIN: Duration = Duration::from_secs(150);
/// How long a sample may take; an agent that is later is not asked again.
const SAMPLE_WITHIN: Duration = Duration::from_secs(1);

/// The server of a run.
///
/// # Errors
/// The agent that is to observe it cannot be reached, or refuses.
pub fn view_of(options: &RunOptions) -> Result<Box<dyn ServerView>, AgentsError> {
    let mut target = ObservedTarget::of(&options.target);
    let protocol = Target::protocol_of(&options.target.to_string());
    let api = options.server_api();
    let api = api.and_then(|api| QueriedServer::connect(api, protocol).ok());
    let mut api = api.map(|api| api.of_target(&options.target));
    let pid = api.as_ref().and_then(|api| api.pid).or(options.server_pid);
    let share_path = options.observe.share_path.clone();
    let share_path = share_path.or_else(|| directory(api.as_ref()?, pid?, &mut target));
    if let Some(name) = &options.scratch {
        target = target.in_folder(name);
        api = api.map(|api| api.in_folder(name));
    }
    let machine: Box<dyn ServerView> = match &options.observe.agent {
        Some(roster) => Box::new(RemoteServer::connect(roster, &target)?),
        None => local(options, &target, pid, share_path.as_deref()),
    };
    Ok(match api {
        None => machine,
        Some(api) => Box::new(api.with(machine)),
    })
}

/// The directory of a share of our server, as this process reaches it.
fn directory(api: &QueriedServer, pid: u32, target: &mut ObservedTarget) -> Option<PathBuf> {
    let data = api.data()?;
    let share = data.share.as_ref()?.strip_prefix("/").ok()?;
    // The server may have another root.
    let share = Path::new("/proc").join(pid.to_string()).join("root").join(share);
    target.below = Some(data.directory().to_owned()).filter(|dir| !dir.as_os_str().is_empty());
    Some(share).filter(|share| share.is_dir())
}

fn local(
    options: &RunOptions,
    target: &ObservedTarget,
    pid: Option<u32>,
    share_path: Option<&Path>,
) -> Box<dyn ServerView> {
    let of_target = match &options.target {
        Target::Path(path) | Target::Block(path) => Some(path.as_path()),
        _ => None,
    };
    if let Some(pid) = pid {
        // The directory of a `path:` target need not be one of the server's.
        let data = share_path.or(of_target);
        return Box::new(LocalServer::of(&[pid], None, target, data));
    }
    if target.port.is_none() {
        return match options.source {
            Source::Local { .. } => Box::new(LocalServer::machine(share_path.or(of_target))),
            Source::Remote { .. } => Box::new(Unseen::default()),
        };
    }
    match LocalServer::find(target, share_path) {
        Ok(server) => Box::new(server),
        Err(why) => Box::new(Unseen { why: Some(why.to_string()) }),
    }
}

/// A server that an agent on its host observes.
pub struct RemoteServer {
    identity: Identity,
    connection: Option<Connection>,
    offset: Offset,
    version: u32,
}

impl RemoteServer {
    fn connect(roster: &Roster, target: &ObservedTarget) -> Result<Self, AgentsError> {
        let (address, joined) = roster.gather()?.pop().ok_or(RosterError::Number)?;
        let broke = |e| AgentsError::Proto(address.clone(), e);
        let mut observer = Self {
            identity: Identity::default(),
            connection: Some(joined.connection()),
            offset: Offset::default(),
            version: 0,
        };
        let versions = proto::VERSIONS;
        let refused = |what| AgentsError::Observer(address.clone(), what);
        match observer.ask(&ToAgent::Hello { versions }, LAB_AGENT_REPLY_MAX).map_err(broke)? {
            FromAgent::Hello { version, .. } => observer.version = version,
            FromAgent::Failed { what } => return Err(refused(what)),
            _ => return Err(broke(ProtoError::Order("hello"))),
        }
        observer.offset = observer.compare_clock().map_err(broke)?;
        let wanted = ToAgent::Observe(target.clone());
        match observer.ask(&wanted, LAB_AGENT_REPLY_MAX).map_err(broke)? {
            FromAgent::Observing { server } => observer.identity = *server,
            FromAgent::Failed { what } => return Err(refused(what)),
            _ => return Err(broke(ProtoError::Order("observing"))),
        }
        Ok(observer)
    }

    /// Sends a message and reads the reply to it.
    fn ask(&mut self, message: &ToAgent, within: Duration) -> Result<FromAgent, ProtoError> {
        let connection = self.connection.as_mut().ok_or(ProtoError::Ended)?;
        connection.set_read_timeout(Some(within))?;
        proto::send(connection, message)?;
        loop {
            match proto::receive(connection)? {
                FromAgent::Beat { .. } => {}
                reply => return Ok(reply),
            }
        }
    }

    fn compare_clock(&mut self) -> Result<Offset, ProtoError> {
        let mut exchanges = Vec::new();
        for id in 0..PINGS {
            let sent_ns = clock::mono_ns();
            match self.ask(&ToAgent::Ping { id }, LAB_AGENT_REPLY_MAX)? {
                FromAgent::Pong { mono_ns, .. } => exchanges.push(Exchange {
                    sent_ns,
                    theirs_ns: mono_ns,
                    received_ns: clock::mono_ns(),
                }),
                _ => return Err(ProtoError::Order("pong")),
            }
        }
        Ok(clock::offset(&exchanges).unwrap_or_default())
    }
}

impl ServerView for RemoteServer {
    fn describe(&mut self) -> ServerInfo {
        info(&self.identity, "observer")
    }

    fn sample(&mut self) -> Option<ServerSample> {
        let reply = self.ask(&ToAgent::Sample, SAMPLE_WITHIN);
        let Ok(FromAgent::Sample { sample }) = reply else {
            // Late replies would be taken for those to later questions.
            self.connection = None;
            return None;
        };
        let mut sample = *sample?;
        sample.at_ns = self.offset.to_ours(sample.at_ns);
        Some(sample)
    }

    fn drop_cache(&mut self) -> DropReport {
        if self.version < proto::COLD_VERSION {
            return observed(Err("the observer is of an earlier version; update it".to_owned()));
        }
        observed(match self.ask(&ToAgent::DropCache, DROP_WITHIN) {
            Ok(FromAgent::Dropped { dropped }) => Ok(*dropped),
            Ok(FromAgent::Failed { what }) => Err(what),
            _ => {
                // As for a sample.
                self.connection = None;
                Err("the observer did not answer".to_owned())
            }
        })
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.connection {
            let _gone = proto::send(connection, &ToAgent::Bye);
            connection.shutdown();
        }
    }
}
