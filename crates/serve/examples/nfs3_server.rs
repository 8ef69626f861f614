//! Serves a directory over NFSv3 as the share `t` until standard input ends, without statistics
//! kept: for measuring the request path.
//!
//! `nfs3_server DIR [ADDR:PORT] [CORES]`

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use probe::hub::{Hub, HubOptions};
use serve::nfs3;
use serve::pool::{Pool, PoolLimits};
use serve::rpc::{self, RpcConfig, RpcService};
use serve::transport::{Budgets, Runtimes, budget::Limits, raise_descriptor_limit};
use vfs::flush::FlushGroup;
use vfs::host::{HostFs, HostOptions};
use vfs::share::{ShareTable, Shares};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("usage: nfs3_server DIR [ADDR:PORT] [CORES]")?;
    let addr: SocketAddr = args.next().as_deref().unwrap_or("127.0.0.1:21049").parse()?;
    let cores: Option<usize> = args.next().map(|n| n.parse()).transpose()?;
    raise_descriptor_limit()?;
    let runtimes = match cores {
        Some(n) => Runtimes::start(n)?,
        None => Runtimes::per_core()?,
    };
    let runtimes = Arc::new(runtimes);
    let hub = Hub::new(HubOptions { cores: runtimes.cores(), recorder_bytes: 64 << 20 });
    let service = RpcService::start(RpcConfig {
        socket: rpc::listen(addr)?,
        runtimes,
        programs: nfs3::programs(shares(&dir)?),
        hub,
        flush: Arc::new(FlushGroup::start()?),
        pool: Pool::start(PoolLimits::default())?,
        budgets: Arc::new(Budgets::new(Limits::default())),
        tls: None,
    })?;
    println!("pid {} nfs://{}/export/t", std::process::id(), service.local_addr());
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest)?;
    println!("drained: {}", service.drain_blocking()?);
    Ok(())
}

fn shares(dir: &str) -> Result<Arc<Shares>, Failure> {
    // A key that does not outlive us: nor do the handles of a measurement.
    let options = HostOptions::new(vfs::share::tag("t"), [7; 32]);
    let mut table = ShareTable::default();
    table.add("t", HostFs::open(dir.as_ref(), options)?, false)?;
    Ok(Shares::new(table))
}
