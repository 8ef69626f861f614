//! The services that transfer files to signed-in users: FTP, SFTP, HTTP with WebDAV, and SMB.

pub mod dav;
pub mod ftp;
pub mod http;
mod lock_counts;
pub mod sftp;
pub mod smb;

use base::failure::Failure;
use base::protocol::Service;
use serve::transport::Tasks;

use crate::instance::Drain;

/// How a service that was started is drained. Without tasks the runtimes have ended.
pub(crate) fn drain_of(service: Service, tasks: Option<Tasks>) -> Result<Drain, Failure> {
    let tried = || format!("start {}", service.title());
    let tasks = tasks.ok_or_else(|| Failure::new(&tried(), "the server is stopping", ""))?;
    Ok(Box::new(move || tasks.end_blocking()))
}
