//! The request of a run, all of it: `run.toml`. Passwords are not in it: a repeat takes them from
//! the environment or from targets that are given to it.

use crate::ab::{REPEATS, Rule};
use crate::conduct::network::Subnet;
use crate::conduct::server::api::ServerApi;
use crate::iozone::flags::Settings;
use crate::iozone::over::OverPlan;
use crate::job::Job;
use crate::measure::over::Until;
use crate::record::RecordError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the format.
pub const VERSION: u32 = 1;

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One job.
    #[default]
    Run,
    /// The Performance Limit Summary.
    Limits,
    /// A comparison of two targets or builds.
    Ab,
    /// A program in the language of Filebench.
    Program,
    /// Tests of IOzone.
    Iozone,
    /// A network profile, which has no archive.
    Net,
    /// A suite, of which the archive is one of runs.
    Suite,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Limits => "limits",
            Self::Ab => "ab",
            Self::Program => "program",
            Self::Iozone => "iozone",
            Self::Net => "net",
            Self::Suite => "suite",
        }
    }
}

/// What a program has in addition; its text is in a file next to the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WmlRequest {
    /// Name of the file, for messages.
    pub file: String,
    /// Variables.
    pub settings: Vec<String>,
    /// Its time, instead of the one in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// The seed.
    pub seed: u64,
}

/// What tests of IOzone have in addition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IozoneRequest {
    /// The seed.
    pub seed: u64,
    /// Its options.
    pub settings: Settings,
    /// Over the emulated link, against a server that is started for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverPlan>,
}

/// What a comparison has in addition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbRequest {
    /// When it ends.
    pub rule: Rule,
    /// The programs, if builds are compared: A, then B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<PathBuf>,
    /// Protocol of the servers that they are.
    pub protocol: String,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTarget {
    /// Name of its column.
    pub name: String,
    /// URL without a password.
    pub url: String,
}

/// A request, resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub format: u32,
    /// What is made.
    pub kind: Kind,
    /// Program and version.
    pub program: String,
    /// The command, without passwords.
    pub command: Vec<String>,
    /// Client processes of this machine; those of agents if there are any.
    pub clients: u32,
    /// Agents on other machines.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Whether local clients connect from addresses of their own.
    pub bind: bool,
    /// Networks, and the server's address in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    /// Whether the files are removed afterwards.
    pub clean: bool,
    /// The folder of the run on the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<String>,
    /// The server's local socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_socket: Option<PathBuf>,
    /// The API of a server on another machine. A repeat needs it as an option again, with its
    /// token.
    #[serde(skip)]
    pub server: Option<ServerApi>,
    /// How often a disturbed run is repeated.
    #[serde(default = "retries")]
    pub retries: u32,
    /// Whether all rows together take less than four minutes.
    #[serde(default)]
    pub quick: bool,
    /// Run after run until the interval is narrow enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Name of the suite that the jobs are the rows of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Of a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ab: Option<AbRequest>,
    /// Of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wml: Option<WmlRequest>,
    /// Of tests of IOzone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iozone: Option<IozoneRequest>,
    /// Targets: the columns of a summary, the sides of a comparison.
    #[serde(default)]
    pub targets: Vec<NamedTarget>,
    /// Jobs with their seeds, settings applied: the rows of a summary.
    #[serde(default)]
    pub jobs: Vec<Job>,
}

fn retries() -> u32 {
    REPEATS
}

impl Request {
    /// Networks, and the server's address in each.
    pub fn subnets(&self) -> Vec<Subnet> {
        self.subnets.iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// Where the server itself is asked.
    pub fn server_api(&self) -> Option<ServerApi> {
        self.server_socket.clone().map(ServerApi::Local).or_else(|| self.server.clone())
    }

    /// As it is kept.
    ///
    /// # Errors
    /// When it cannot be written as TOML.
    pub fn text(&self) -> Result<String, RecordError> {
        toml::to_string(self).map_err(|e| RecordError::Form("the request".into(), e.to_string()))
    }

    /// From its text, unchecked.
    ///
    /// # Errors
    /// It is not one.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|e| e.to_string())
    }

    /// Reads a request.
    ///
    /// # Errors
    /// When it cannot be read, is not one, or is of a later version.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| RecordError::Io(format!("cannot read {name}"), e))?;
        let request = Self::parse(&text).map_err(|why| RecordError::Form(name.clone(), why))?;
        let wrong = |why: String| Err(RecordError::Form(name.clone(), why));
        if request.format > VERSION {
            return wrong(format!("format {} is newer", request.format));
        }
        let builds = request.ab.as_ref().map_or(0, |ab| ab.builds.len());
        let has_work = match request.kind {
            Kind::Program => request.wml.is_some(),
            Kind::Iozone => request.iozone.is_some(),
            // They have no archive of this kind.
            Kind::Net | Kind::Suite => false,
            Kind::Run | Kind::Limits | Kind::Ab => !request.jobs.is_empty(),
        };
        let own_server = request.iozone.as_ref().is_some_and(|tests| tests.over.is_some());
        let has_target = request.targets.len() + builds > 0 || own_server;
        if !has_target || !has_work {
            return wrong("it has no target or no job".to_owned());
        }
        if request.kind == Kind::Ab && request.targets.len() + builds != 2 {
            return wrong("a comparison has two sides".to_owned());
        }
        match request.jobs.iter().find_map(|job| job.check().err()) {
            Some(error) => wrong(error.to_string()),
            None => Ok(request),
        }
    }
}
