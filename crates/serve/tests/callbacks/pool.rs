//! A pool without room delays compounds, and does nothing twice.

use serve::pool::PoolLimits;
use vfs::mem::MemFs;
use vfs::share::tag;
use wire::nfs4::*;

use crate::scene::{Client, Scene};

#[test]
fn a_compound_that_waits_for_the_pool_continues_where_it_was() {
    let pool = PoolLimits { threads: 1, queue: 1, per_client: 1 };
    let scene = Scene::with_pool(MemFs::new(tag("t"), 1 << 30), Vec::new(), pool);
    let addr = scene.addr;
    let clients = (0..6_u8).map(|n| {
        std::thread::spawn(move || {
            let mut client = Client::new(addr, &[n], vec![CallbackSec4::None(())]);
            // No delegation of another is in the way.
            let access = share4::ACCESS_BOTH | share4::WANT_NO_DELEG;
            for _ in 0..100 {
                client.open(access, true).expect("its slot is its own meanwhile");
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    clients.into_iter().for_each(|client| client.join().expect("all are done"));
}
