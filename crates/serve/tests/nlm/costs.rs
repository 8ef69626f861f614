//! What calls of NLM cost: the most expensive that a seeded search finds.

use base::random::{Random, SeededRandom};
use wire::nlm4::*;

use crate::host::{COOKIE, Host, Services, args};
use crate::search::worst;
use crate::server::{Server, World};

#[test]
fn of_nlm() {
    let services = Services::start();
    let world = World::new(services.portmap);
    let server = Server::start(&world);
    let mut host = Host::new(server.addr, "one");
    let files: Vec<_> = (0..4).map(|n| world.file(&format!("f{n}"), 0o666)).collect();
    worst("nlm", |random: &mut SeededRandom| {
        let file = &files[random.below(4) as usize];
        host.svid = random.below(50) as u32;
        // Every second byte: ranges that cannot be joined.
        let offset = 2 * random.below(20_000);
        let len = if random.below(50) == 0 { 0 } else { 1 };
        let alock = host.alock(file, offset, len);
        let exclusive = random.below(2) == 0;
        let what = match random.below(8) {
            0 => {
                let test = TestArgs { cookie: COOKIE, exclusive, alock };
                host.call(Proc::TEST, &test);
                "TEST"
            }
            1 => {
                host.call(Proc::UNLOCK, &UnlockArgs { cookie: COOKIE, alock });
                "UNLOCK"
            }
            2 => {
                let cancel = CancelArgs { cookie: COOKIE, block: true, exclusive, alock };
                host.call(Proc::CANCEL, &cancel);
                "CANCEL"
            }
            3 => {
                let block = random.below(20) == 0;
                host.call(Proc::LOCK, &LockArgs { exclusive, block, ..args(alock) });
                "LOCK"
            }
            _ => {
                host.call(Proc::NM_LOCK, &LockArgs { exclusive, ..args(alock) });
                "NM_LOCK"
            }
        };
        format!("{what} of {} at {offset}, {len} bytes", host.svid)
    });
}
