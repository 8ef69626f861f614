//! `plimsoll lab agent`, and the options of commands that use agents on other machines.

use super::Outcome;
use super::api::ApiArgs;
use crate::agent::allow::Owner;
use crate::agent::code::{CodeError, CodeFile, file_given};
use crate::agent::observe::ObserveOptions;
use crate::agent::{self, AgentOptions, Meeting};
use crate::conduct::roster::{Roster, RosterError};
use base::limits::LAB_CODE_LIFE;
use base::out::note;
use base::text::decimal;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Agents on other machines.
#[derive(Debug, Args)]
pub(super) struct AgentsArgs {
    /// Agents on other machines to use instead of local clients, comma-separated; with
    /// --listen-agents their number
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = address)]
    agents: Vec<String>,
    /// Wait for agents that call this address (lab agent --join) instead of calling them
    #[arg(long, value_name = "ADDRESS:PORT", requires = "agents")]
    listen_agents: Option<SocketAddr>,
    /// File with the join codes of the agents: one line with a code for all, or lines with
    /// HOST:PORT and a code; - is standard input. With --listen-agents the code is made and written
    /// there if the file does not exist [default: PLIMSOLL_AGENT_CODE_FILE in the environment names
    /// it]
    #[arg(long, value_name = "FILE")]
    code_file: Option<PathBuf>,
    /// With --listen-agents: how long the join code is valid
    #[arg(long, value_name = "SECONDS", default_value_t = LAB_CODE_LIFE.as_secs())]
    code_life: u64,
    /// One for the process: a code is used once, and later runs recognise the agents.
    #[arg(skip)]
    roster: Mutex<Option<Arc<Roster>>>,
    /// The code file, which may be standard input, is read once.
    #[arg(skip)]
    codes: OnceLock<CodeFile>,
}

/// Agents on other machines, and what observes a server.
#[derive(Debug, Args)]
pub(super) struct RemoteArgs {
    /// Agents that make load.
    #[command(flatten)]
    load: AgentsArgs,
    /// Agent on the server's host that only observes it: `lab agent --observe` [default: a server
    /// on this machine is found by its address, in any network namespace]
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    observe: Option<String>,
    /// File with the join code of that agent [default: --code-file]
    #[arg(long, value_name = "FILE", requires = "observe")]
    observe_code_file: Option<PathBuf>,
    /// The server's own API.
    #[command(flatten)]
    pub(super) server: ApiArgs,
    /// One for the process, as the agents are.
    #[arg(skip)]
    observer: Mutex<Option<Arc<Roster>>>,
}

impl AgentsArgs {
    /// Whether there are any.
    pub(super) fn is_used(&self) -> bool {
        !self.agents.is_empty()
    }

    /// How many agents there are to be; 0 if none are used.
    fn number(&self) -> u32 {
        match (self.listen_agents, self.agents.as_slice()) {
            (Some(_), [one]) => decimal(one).unwrap_or(0),
            (_, agents) => agents.len() as u32,
        }
    }

    /// Addresses of agents that are called; of those that call, only how many they are.
    pub(super) fn named(&self) -> (&[String], usize) {
        let called = if self.listen_agents.is_some() { &[] } else { self.agents.as_slice() };
        (called, self.number() as usize)
    }

    /// The agents, if there are any.
    pub(super) fn roster(&self, quiet: bool) -> Result<Option<Arc<Roster>>, RosterError> {
        if !self.is_used() {
            return Ok(None);
        }
        let mut roster = self.roster.lock().unwrap_or_else(PoisonError::into_inner);
        if roster.is_none() {
            *roster = Some(Arc::new(self.meet(quiet)?));
        }
        Ok(roster.clone())
    }

    fn codes(&self) -> Result<&CodeFile, CodeError> {
        if let Some(codes) = self.codes.get() {
            return Ok(codes);
        }
        let file = file_given(self.code_file.as_deref()).ok_or(CodeError::None)?;
        let read = CodeFile::read(&file)?;
        Ok(self.codes.get_or_init(|| read))
    }

    fn meet(&self, quiet: bool) -> Result<Roster, RosterError> {
        let Some(at) = self.listen_agents else {
            return Roster::call(&self.agents, self.codes()?);
        };
        let file = file_given(self.code_file.as_deref());
        let number = match self.agents.as_slice() {
            [one] => decimal(one).ok_or(RosterError::Number)?,
            _ => return Err(RosterError::Number),
        };
        let life = Duration::from_secs(self.code_life);
        let (roster, code) = Roster::listen(at, number, file.as_deref(), life)?;
        if code.made && code.written.is_none() {
            note(&format!("join code: {}", code.code.text()));
        }
        if let Some(at) = roster.listens_at().filter(|_| !quiet) {
            note(&format!("waiting for {number} agents on {at}"));
        }
        Ok(roster)
    }
}

impl RemoteArgs {
    /// Whether agents on other machines are used.
    pub(super) fn is_used(&self) -> bool {
        self.load.is_used()
    }

    /// Agents on other machines as they were given.
    pub(super) fn agents(&self) -> &[String] {
        &self.load.agents
    }

    /// How many agents there are to be; 0 if none are used.
    pub(super) fn number(&self) -> u32 {
        self.load.number()
    }

    /// The same options with these agents.
    pub(super) fn with(&self, agents: Vec<String>) -> Self {
        let load = AgentsArgs {
            agents,
            listen_agents: self.load.listen_agents,
            code_file: self.load.code_file.clone(),
            code_life: self.load.code_life,
            roster: Mutex::default(),
            codes: OnceLock::new(),
        };
        Self {
            load,
            observe: self.observe.clone(),
            observe_code_file: self.observe_code_file.clone(),
            server: self.server.clone(),
            observer: Mutex::default(),
        }
    }

    /// The agents, if there are any.
    pub(super) fn roster(&self, quiet: bool) -> Result<Option<Arc<Roster>>, RosterError> {
        self.load.roster(quiet)
    }

    /// The agent that observes the server, if there is one.
    pub(super) fn observer(&self) -> Result<Option<Arc<Roster>>, RosterError> {
        let Some(address) = &self.observe else { return Ok(None) };
        let mut observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        if observer.is_none() {
            let address = std::slice::from_ref(address);
            let roster = match &self.observe_code_file {
                Some(file) => Roster::call(address, &CodeFile::read(file)?)?,
                None => Roster::call(address, self.load.codes()?)?,
            };
            *observer = Some(Arc::new(roster));
        }
        Ok(observer.clone())
    }
}

/// Refuses a code in an argument, which every user of the machine can read.
fn address(text: &str) -> Result<String, String> {
    match text.contains('=') {
        false => Ok(text.to_owned()),
        true => Err("a join code in an argument is visible to all users of the machine; write it \
                     to a file and add --code-file FILE"
            .into()),
    }
}

#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    /// Listen address for the controller
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2150")]
    listen: SocketAddr,
    /// Call the controller at this address (its --listen-agents) instead of listening; exit when it
    /// ends
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "listen")]
    join: Option<String>,
    /// File with the one-time join code; - is standard input. An agent that listens makes a code if
    /// the file does not exist, and prints it if no file is given [default:
    /// PLIMSOLL_AGENT_CODE_FILE in the environment names it]
    #[arg(long, value_name = "FILE")]
    code_file: Option<PathBuf>,
    /// How long the join code of an agent that listens is valid
    #[arg(long, value_name = "SECONDS", default_value_t = LAB_CODE_LIFE.as_secs())]
    code_life: u64,
    /// json: print one line with pid and address, and the join code if the agent made one, when
    /// ready, and one for each later code
    #[arg(long, value_name = "FORMAT", value_parser = ["json"])]
    announce: Option<String>,
    /// Server that controllers may put load on: a network (10.0.0.0/8), HOST[:PORT], or
    /// SCHEME://HOST[:PORT]; repeatable. Without it every server
    #[arg(long = "allow-target", value_name = "SERVER")]
    allow_targets: Vec<String>,
    /// Directory that controllers may use as path: target, with all that is below it; repeatable.
    /// Without it path: targets are refused
    #[arg(long = "allow-path", value_name = "DIRECTORY")]
    allow_paths: Vec<PathBuf>,
    /// Block device or disk file that controllers may overwrite as block: target; repeatable.
    /// Without it block: targets are refused
    #[arg(long = "allow-block", value_name = "DEVICE")]
    allow_blocks: Vec<PathBuf>,
    /// Make no load, but observe the server on this machine for a controller: its processes,
    /// network, devices and page cache
    #[arg(long, conflicts_with_all = ["allow_targets", "allow_paths", "allow_blocks", "inherited"])]
    observe: bool,
    /// Directory, disk file or block device with the data of the share [default: found by the
    /// exported path and the files that the server has open]
    #[arg(long, value_name = "PATH", requires = "observe")]
    share_path: Option<PathBuf>,
    /// Exit after one run
    #[arg(long)]
    once: bool,
    /// Serve the process that started this one, over standard input
    #[arg(long, hide = true)]
    inherited: bool,
}

/// Runs the command.
pub(super) fn run_agent(args: &AgentArgs) -> Outcome {
    if args.inherited {
        agent::run_inherited()?;
        return Ok(ExitCode::SUCCESS);
    }
    agent::run(&AgentOptions {
        meeting: match &args.join {
            Some(controller) => Meeting::Call(controller.clone()),
            None => Meeting::Listen(args.listen),
        },
        code_file: file_given(args.code_file.as_deref()),
        code_life: Duration::from_secs(args.code_life),
        owner: Owner {
            targets: args.allow_targets.clone(),
            paths: args.allow_paths.clone(),
            blocks: args.allow_blocks.clone(),
            observe: args.observe.then(|| ObserveOptions { share_path: args.share_path.clone() }),
        },
        once: args.once,
        announce: args.announce.is_some(),
    })?;
    Ok(ExitCode::SUCCESS)
}
