//! Seeded sequences of delegations, conflicts, returns, expired leases and ends: no client writes
//! what another may cache, every recall comes to an end, and nothing is left.

use vfs::handle::Handle;
use vfs::locks::{Caching, Looked, SHARE_WRITE, What};

use super::super::channel::CallbackCred;
use super::super::deleg::{Caller, Deleg, DelegationRequest, Phase};
use super::random::Dice;
use super::*;
use crate::rpc::Back;

const SEEDS: u64 = 1_000;
const STEPS: usize = 80;

/// Notes the recall, as a caller does; it succeeds or fails at random.
struct Unreliable(Arc<Mutex<Vec<Arc<Deleg>>>>);

impl Caller for Unreliable {
    fn recall(&self, deleg: &Arc<Deleg>) {
        lock(&self.0).push(Arc::clone(deleg));
    }
    fn look(&self, _: &Arc<Deleg>, _: bool) -> Looked {
        Looked::Unknown
    }
    fn probe(&self, _: &Arc<Client>) {}
}

struct Sim {
    state: State,
    dice: Dice,
    now: u64,
    calls: Arc<Mutex<Vec<Arc<Deleg>>>>,
    clients: Vec<Arc<Client>>,
    /// Kept open for as long as the test.
    lines: Vec<Arc<Back>>,
    opens: Vec<(usize, Stateid4, FileKey)>,
    held: Vec<(usize, Stateid4)>,
}

impl Sim {
    fn new(seed: u64) -> Self {
        let (state, calls) = (state(), Arc::<Mutex<Vec<_>>>::default());
        state.recalls.set_caller(Box::new(Unreliable(Arc::clone(&calls))));
        let dice = Dice(seed);
        let mut sim = Self {
            state,
            dice,
            now: 1,
            calls,
            clients: Vec::new(),
            lines: Vec::new(),
            opens: Vec::new(),
            held: Vec::new(),
        };
        (0..3).for_each(|n| sim.come(n));
        sim
    }

    /// A client comes, or comes again.
    fn come(&mut self, who: usize) {
        let name = [who as u8, self.dice.roll(200) as u8];
        let (client, id) = client41(&self.state, &name, self.now);
        let (session, line) = (self.state.session(&id).unwrap(), Back::alone(client.id));
        self.state.with_channel(&session, |channel| {
            channel.set(1, CallbackCred::None);
            channel.bind(&line);
        });
        self.lines.push(line);
        match self.clients.get_mut(who) {
            Some(at) => *at = client,
            None => self.clients.push(client),
        }
    }

    fn delegate(&mut self, who: usize, key: FileKey) {
        let file = (key.fileid + 1) << 16;
        if self.state.may_delegate(&self.clients[who], file, self.now).is_err() {
            return;
        }
        let (handle, attr) = (Handle::new(b"a handle").unwrap(), super::deleg::attr_of(key));
        let wanted = DelegationRequest { file, slot: file, handle: &handle, attr: &attr };
        if let Ok(id) = self.state.delegate(&self.clients[who], wanted, Caching::READ) {
            self.held.push((who, id));
        }
    }

    fn open(&mut self, who: usize, key: FileKey) {
        let client = Arc::clone(&self.clients[who]);
        let share = Share { access: 1 + self.dice.roll(3) as u8, deny: 0 };
        let owner = client.owner(b"o").unwrap();
        if let Ok(id) = self.state.open(&client, key, &owner, share, self.now) {
            self.opens.push((who, id, key));
        }
        for deleg in std::mem::take(&mut *lock(&self.calls)) {
            self.state.recalled(&deleg, self.now);
            deleg.set_phase(if self.dice.roll(2) == 0 { Phase::Notified } else { Phase::Unsent });
        }
    }

    fn pass(&mut self) {
        self.now += self.dice.roll(LEASE / 2);
        for client in &self.clients {
            if self.dice.roll(4) > 0 {
                client.renew(self.now);
            }
        }
        self.state.sweep(self.now);
        for deleg in self.state.look_at_recalls(self.now) {
            deleg.set_phase(Phase::Notified);
        }
    }

    fn step(&mut self) {
        let who = self.dice.roll(3) as usize;
        let key = FileKey { fsid: 1, fileid: self.dice.roll(3), generation: 0 };
        match self.dice.roll(12) {
            0..=3 => self.delegate(who, key),
            4..=6 => self.open(who, key),
            7 if !self.opens.is_empty() => {
                let at = self.dice.roll(self.opens.len() as u64) as usize;
                let (who, id, key) = self.opens.swap_remove(at);
                let latest = Stateid4 { seqid: 0, ..id };
                let _ = self.state.close(&self.clients[who], &latest, key);
            }
            8 if !self.held.is_empty() => {
                let at = self.dice.roll(self.held.len() as u64) as usize;
                let (who, id) = self.held.swap_remove(at);
                let client = Arc::clone(&self.clients[who]);
                if self.state.delegation_return(&client, &id) == Err(Nfsstat4::DELEG_REVOKED) {
                    assert_eq!(self.state.free_stateid(&client, &id), Ok(()));
                }
            }
            9 if self.dice.roll(4) == 0 => {
                self.state.expire(self.clients[who].id);
                self.come(who);
            }
            _ => self.pass(),
        }
    }

    fn check(&self, seed: u64) {
        let rows = self.state.locks.list(None, usize::MAX);
        let leases: Vec<_> = rows.iter().filter(|r| matches!(r.what, What::Lease(..))).collect();
        let counted: u64 = self.state.clients(self.now).iter().map(|c| c.delegations).sum();
        let of_all = self.state.recalls.counts().0;
        assert_eq!((counted, of_all), (leases.len() as u64, counted), "seed {seed}");
        for open in &rows {
            let What::Open(share) = open.what else { continue };
            for lease in leases.iter().filter(|lease| lease.key == open.key) {
                let writes = share.access & SHARE_WRITE != 0;
                let own = lease.owner.client == open.owner.client;
                assert!(own || !writes, "seed {seed}: {open:?} beside {lease:?}");
            }
        }
    }
}

#[test]
fn no_client_writes_what_another_may_trust() {
    let (mut granted, mut revoked) = (0, 0);
    for seed in 0..SEEDS {
        let mut sim = Sim::new(seed);
        for _ in 0..STEPS {
            sim.step();
            sim.check(seed);
        }
        granted += sim.held.len();
        revoked += sim.state.recalls.counts().1;
        for client in sim.state.clients(sim.now) {
            sim.state.expire(client.id);
        }
        assert!(sim.state.look_at_recalls(sim.now + 2 * LEASE).is_empty(), "seed {seed}");
        let left = (sim.state.recalls.counts().0, sim.state.locks.counts().leases);
        assert_eq!(left, (0, 0), "seed {seed}");
    }
    assert!(granted > 0 && revoked > 0, "the sequences come to what they are for");
}
