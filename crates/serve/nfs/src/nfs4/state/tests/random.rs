//! Seeded sequences of whatever clients do, against the simplest account of it: the lock table and
//! the stateids never come apart, and nothing is left when all clients are gone.

use super::*;

const SEEDS: u64 = 2_000;
const STEPS: usize = 60;

/// Numbers from a seed (splitmix64).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

struct Sim {
    state: State,
    dice: Dice,
    now: u64,
    clients: Vec<Arc<Client>>,
    opens: Vec<(usize, Stateid4, FileKey)>,
    locks: Vec<(usize, Stateid4, FileKey)>,
}

impl Sim {
    fn new(seed: u64) -> Self {
        let state = state();
        let clients = (0..3).map(|n| client41(&state, &[n], 0).0).collect();
        let (opens, locks) = (Vec::new(), Vec::new());
        Self { state, dice: Dice(seed), now: 0, clients, opens, locks }
    }

    fn pick(&mut self, from: usize) -> Option<usize> {
        (from > 0).then(|| self.dice.roll(from as u64) as usize)
    }

    fn step(&mut self) {
        let who = self.dice.roll(3) as usize;
        let client = Arc::clone(&self.clients[who]);
        let key = FileKey { fsid: 1, fileid: self.dice.roll(3), generation: 0 };
        match self.dice.roll(10) {
            0..=3 => {
                let (access, deny) = (1 + self.dice.roll(3) as u8, self.dice.roll(6) as u8 / 4);
                let owner = client.owner(&[self.dice.roll(2) as u8]).unwrap();
                let share = Share { access, deny };
                if let Ok(id) = self.state.open(&client, key, &owner, share, self.now) {
                    self.opens.push((who, id, key));
                }
            }
            4 | 5 => self.lock(),
            6 => {
                if let Some(at) = self.pick(self.opens.len()) {
                    let (who, id, key) = self.opens.swap_remove(at);
                    let latest = Stateid4 { seqid: 0, ..id };
                    let _ = self.state.close(&self.clients[who], &latest, key);
                }
            }
            7 => {
                if let Some(at) = self.pick(self.locks.len()) {
                    let (who, id, key) = self.locks[at];
                    let latest = Stateid4 { seqid: 0, ..id };
                    let (start, client) = (self.dice.roll(20), &self.clients[who]);
                    let range = Range::new(start, 1 + self.dice.roll(20)).unwrap();
                    let _ = self.state.unlock(client, &latest, key, range);
                }
            }
            8 => {
                self.now += self.dice.roll(LEASE);
                client.renew(self.now);
            }
            _ => {
                // It has restarted.
                let verifier = [self.dice.roll(200) as u8; 8];
                let asked = self.state.exchange_id(&[who as u8], verifier, false, 0, self.now);
                let client = asked.unwrap().0;
                let new = new_session(client.id, State::next_create(&client));
                self.state.create_session(&new, 0, self.now).unwrap();
                self.clients[who] = client;
            }
        }
    }

    fn lock(&mut self) {
        let Some(at) = self.pick(self.opens.len()) else { return };
        let (who, id, key) = self.opens[at];
        let client = Arc::clone(&self.clients[who]);
        let kind = if self.dice.roll(2) == 0 { Kind::Read } else { Kind::Write };
        let range = Range::new(self.dice.roll(20), 1 + self.dice.roll(20)).unwrap();
        let owner = client.owner(&[self.dice.roll(2) as u8]).unwrap();
        let latest = Stateid4 { seqid: 0, ..id };
        let want = Locking { owner, range, kind };
        if let Ok(id) = self.state.lock_new(&client, &latest, key, &want, self.now) {
            self.locks.push((who, id, key));
        }
    }

    /// The two tables agree, and no two owners have conflicting locks.
    fn check(&self, seed: u64) {
        let rows = self.state.locks.list(None, usize::MAX);
        let opens: usize = self.state.clients(self.now).iter().map(|c| c.opens).sum();
        let listed = rows.iter().filter(|r| matches!(r.what, vfs::locks::What::Open(_))).count();
        assert_eq!(opens, listed, "seed {seed}");
        assert_eq!(self.state.locks.counts().opens, opens as u64, "seed {seed}");
        for (n, a) in rows.iter().enumerate() {
            assert!(self.state.live.get(&a.owner.client.id).is_some(), "seed {seed}: {a:?}");
            for b in rows.iter().skip(n + 1).filter(|b| b.key == a.key && b.owner != a.owner) {
                let clash = match (a.what, b.what) {
                    (vfs::locks::What::Open(a), vfs::locks::What::Open(b)) => a.conflicts(b),
                    (vfs::locks::What::Lock(ra, ka), vfs::locks::What::Lock(rb, kb)) => {
                        ra.overlaps(&rb) && ka.conflicts(kb)
                    }
                    _ => false,
                };
                assert!(!clash, "seed {seed}: {a:?} and {b:?}");
            }
        }
    }
}

#[test]
fn the_tables_never_come_apart_and_nothing_is_left() {
    for seed in 0..SEEDS {
        let mut sim = Sim::new(seed);
        for _ in 0..STEPS {
            sim.step();
            sim.check(seed);
        }
        for client in sim.state.clients(sim.now) {
            sim.state.expire(client.id);
        }
        let left = sim.state.locks.counts();
        assert_eq!((left.opens, left.locks, sim.state.counts()), (0, 0, (0, 0)), "seed {seed}");
    }
}
