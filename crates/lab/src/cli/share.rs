//! A share of the server that runs here, in place of the targets of a comparison: how the command
//! line names it.
//!
//! The lab knows of a server nothing but what it serves. A program that knows the servers of this
//! machine makes targets of a share ([`Find`]): `plimsoll` itself.

use crate::client::service::at::ServiceAt;
use crate::transfer::Plan;
use base::out::note;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// The default user: the administrator of a first start.
pub const USER: &str = "admin";

/// A share of a Plimsoll server.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Compare protocols on a share of the server on this machine")]
pub struct ShareArgs {
    /// Compare all protocols on this share, instead of --target; addresses, certificates and host
    /// keys come from the server
    #[arg(long, value_name = "NAME", conflicts_with = "targets")]
    pub share: Option<String>,
    /// User to sign in as. The password comes from --password-file, the environment variable
    /// PLIMSOLL_LAB_PASSWORD, or a prompt
    #[arg(long, value_name = "NAME", requires = "share", default_value = USER)]
    pub user: String,
    /// File with the user's password
    #[arg(long, value_name = "FILE", requires = "share")]
    pub password_file: Option<PathBuf>,
    /// Only these protocols, comma-separated: ftp, ftps, sftp, http, https, webdav, webdavs
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "share")]
    pub protocols: Vec<String>,
    /// Server with this state directory, if several run on this machine
    #[arg(long, value_name = "DIR", requires = "share")]
    pub state: Option<PathBuf>,
}

/// What a share is to a comparison.
#[derive(Debug, Clone)]
pub struct ShareTargets {
    /// One target for each protocol, passwords included.
    pub targets: Vec<ServiceAt>,
    /// The server's process, or one for each target; none if they are not known.
    pub pids: Vec<u32>,
}

/// Finds the targets of a share for a comparison. It prints its errors itself.
pub type Find<'a> = &'a dyn Fn(&str, &ShareArgs, &Plan) -> Result<ShareTargets, ExitCode>;

/// For programs that know no servers.
///
/// # Errors
/// Always: wrong usage.
pub fn nowhere(share: &str, _args: &ShareArgs, _plan: &Plan) -> Result<ShareTargets, ExitCode> {
    note(&format!(
        "plimsoll lab: --share {share} is only available in `plimsoll lab`; use --target URL"
    ));
    Err(ExitCode::from(2))
}
