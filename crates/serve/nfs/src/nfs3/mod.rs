//! NFS version 3 and MOUNT version 3 (RFC 1813).
//!
//! - [`dispatch`]: procedures and their handlers; [`call`]: a call in its handler's hands.
//! - [`attr`], [`io`], [`names`], [`dir`], [`info`], [`mount`]: the operations.
//! - [`status`], [`convert`]: to the wire and back.
//!
//! What is and is not supported: `docs/protocols/nfs.md`.

mod attr;
mod call;
mod convert;
mod dir;
mod dispatch;
mod info;
mod io;
mod mount;
mod mounts;
mod names;
mod service;
mod status;

use std::sync::{Arc, Mutex};

use base::random::{Random, SystemRandom};
use vfs::share::Shares;

use self::dispatch::{Mount3, Nfs3};
use self::mounts::Mounts;
use self::service::Service;
use crate::rpc::Program;

/// Both programs, on these shares.
pub fn programs(shares: Arc<Shares>) -> Vec<Arc<dyn Program>> {
    let service = Arc::new(Service {
        shares,
        mounts: Mutex::new(Mounts::default()),
        verifier: SystemRandom.next_u64().to_be_bytes(),
    });
    vec![Arc::new(Nfs3(Arc::clone(&service))), Arc::new(Mount3(service))]
}
