//! A seeded simulation of NLM: processes at several hosts lock, wait, poll, cancel and unlock;
//! calls to hosts and replies in either direction are lost or repeated; hosts restart, and so does
//! the server. No two processes may ever believe that they hold conflicting locks; the lock table
//! holds exactly what they believe; when all have unlocked, nothing is left.
//!
//! `PLIMSOLL_SIM_SEED=N` runs one seed, `PLIMSOLL_SIM_SEEDS=N` runs N seeds.

mod world;

use base::random::{Random, SeededRandom};
use wire::nlm4::Nlm4Stat;

use super::conn::Message;
use world::{BYTES, PROCESSES, Process, Request, World, address};

/// 3 to 5 s in a development build.
const SEEDS: u64 = 2_000;
const STEPS: usize = 400;

struct Sim {
    world: World,
    processes: Vec<Process>,
    /// Grants to report, and whether the host may have received them.
    grants: Vec<(u64, bool)>,
    random: SeededRandom,
}

impl Sim {
    fn new(seed: u64) -> Self {
        let processes = vec![Process::default(); PROCESSES];
        let (world, random) = (World::new(), SeededRandom::new(seed));
        Self { world, processes, grants: Vec::new(), random }
    }

    fn once_in(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    fn lock(&mut self, n: usize, want: Request, block: bool) {
        let stat = self.world.lock(n, want, block, false);
        let lost = self.once_in(8);
        let process = &mut self.processes[n];
        process.lost = lost;
        // A process that may wait accepts a grant before it sends its request.
        process.waiting = block.then_some(want);
        process.unsure = None;
        match stat {
            Nlm4Stat::DENIED_GRACE_PERIOD if !block => {}
            // It retries until it has a reply.
            _ if lost && !block => process.unsure = Some(want),
            _ if lost => {}
            Nlm4Stat::GRANTED => process.take(want),
            Nlm4Stat::BLOCKED => {}
            Nlm4Stat::DENIED_GRACE_PERIOD => {}
            Nlm4Stat::DENIED | Nlm4Stat::DEADLCK => process.waiting = None,
            other => panic!("{other}"),
        }
    }

    fn unlock(&mut self, n: usize, range: Request) {
        self.processes[n].drop_range(range);
        for _ in 0..1 + self.random.below(2) {
            assert_eq!(self.world.unlock(n, range), Nlm4Stat::GRANTED);
        }
    }

    fn cancel(&mut self, n: usize) {
        let Some(want) = self.processes[n].waiting.take() else { return };
        let mut first = None;
        for _ in 0..1 + self.random.below(2) {
            let stat = self.world.cancel(n, want);
            assert!(matches!(stat, Nlm4Stat::GRANTED | Nlm4Stat::DENIED), "{stat}");
            first = first.or(Some(stat));
        }
        if first == Some(Nlm4Stat::DENIED) {
            // It does not wait: the reply with the grant may have been lost.
            self.unlock(n, want);
        }
    }

    /// A call to a host, as the service makes it.
    fn call_host(&mut self, at: usize) {
        let (id, knew) = self.grants.swap_remove(at);
        let Some((n, request)) = self.world.granted(id) else { return };
        match self.random.below(4) {
            // It did not arrive.
            0 => self.grants.push((id, knew)),
            // It cannot be reached any more.
            1 if !knew => self.world.nlm.answered(id, Nlm4Stat::DENIED),
            fate => {
                let stat = if self.processes[n].waiting == Some(request) {
                    self.processes[n].take(request);
                    Nlm4Stat::GRANTED
                } else {
                    Nlm4Stat::DENIED
                };
                match fate {
                    // The reply is lost.
                    2 => self.grants.push((id, true)),
                    _ if knew && stat != Nlm4Stat::GRANTED => {}
                    _ => self.world.nlm.answered(id, stat),
                }
            }
        }
    }

    fn restart_host(&mut self, n: usize) {
        let host = address(n);
        let all = self.processes.iter_mut().enumerate();
        all.filter(|(n, _)| address(*n) == host).for_each(|(_, p)| *p = Process::default());
        self.world.nlm.restarted((host, 700), (world::NAME, 0), true).unwrap();
    }

    fn restart_server(&mut self) {
        self.grants.clear();
        let notified = self.world.restart();
        for (n, process) in self.processes.iter_mut().enumerate() {
            process.reclaims = process.held.iter().any(Option::is_some);
            assert!(
                !process.reclaims || notified.contains(&address(n)),
                "process {n} is not notified"
            );
        }
    }

    fn reclaim(&mut self, n: usize) {
        for run in self.processes[n].runs() {
            let stat = self.world.lock(n, run, false, true);
            assert_eq!(stat, Nlm4Stat::GRANTED, "process {n} may not have {run:?} back");
        }
        self.processes[n].reclaims = false;
    }

    fn time_goes_by(&mut self) {
        // Hosts are notified until they reply, and reclaim in time.
        if self.processes.iter().all(|process| !process.reclaims) {
            self.world.pass_grace();
        }
        self.world.nlm.sweep();
    }

    fn step(&mut self) {
        let n = self.random.below(PROCESSES as u64) as usize;
        let start = self.random.below(BYTES as u64);
        let len = 1 + self.random.below(BYTES as u64 - start);
        let range = (start, len, self.once_in(2));
        let me = &self.processes[n];
        let has_none = me.has_none(range);
        match (self.random.below(12), me.waiting, me.unsure) {
            _ if me.reclaims => self.reclaim(n),
            (0..=7, None, Some(want)) => self.lock(n, want, false),
            (0..=2, None, _) if has_none => self.lock(n, range, false),
            (3..=5, None, None) if has_none => self.lock(n, range, true),
            (0..=8, None, None) => self.unlock(n, range),
            (0..=3, Some(want), _) => self.lock(n, want, true),
            (4, Some(_), _) => self.cancel(n),
            (9, ..) if self.once_in(10) => self.restart_host(n),
            (10, ..) if self.once_in(20) => self.restart_server(),
            (11, ..) if self.once_in(4) => self.time_goes_by(),
            _ if !self.grants.is_empty() => {
                let at = self.random.below(self.grants.len() as u64) as usize;
                self.call_host(at);
            }
            _ => {}
        }
        while let Ok(message) = self.world.messages.try_recv() {
            if let Message::Granted { id } = message {
                self.grants.push((id, false));
            }
        }
    }

    /// No two hold what excludes the other, and the table holds what they believe.
    fn check(&self, when: &str) {
        (0..BYTES).for_each(|at| {
            let held: Vec<_> = self.processes.iter().filter_map(|p| p.held[at]).collect();
            assert!(held.len() < 2 || held.iter().all(|exclusive| !exclusive), "{when}: byte {at}");
        });
        let table = self.world.table();
        for (n, (process, table)) in self.processes.iter().zip(&table).enumerate() {
            for (at, (believed, there)) in process.held.iter().zip(table).enumerate() {
                if believed.is_some() && !process.reclaims {
                    assert_eq!(there, believed, "{when}: process {n} believes in byte {at}");
                }
                let owned = there.is_none() || believed.is_some() || self.is_coming(n, at as u64);
                assert!(owned, "{when}: byte {at} is kept for process {n}");
            }
        }
    }

    /// Whether a byte is granted and on the way to the process, or was requested without a reply.
    fn is_coming(&self, n: usize, at: u64) -> bool {
        let covers = |(start, len, _): Request| (start..start + len).contains(&at);
        let granted = self.grants.iter().filter_map(|(id, _)| self.world.granted(*id));
        let is_granted = granted.filter(|(whose, _)| *whose == n).any(|(_, what)| covers(what));
        is_granted || self.processes[n].unconfirmed().is_some_and(covers)
    }

    /// All let go, and nothing is left.
    fn end(&mut self, seed: u64) {
        for n in 0..PROCESSES {
            if self.processes[n].reclaims {
                self.reclaim(n);
            }
        }
        for n in (0..PROCESSES).chain(0..PROCESSES) {
            // The second time: what was granted while the others let go.
            self.cancel(n);
            self.unlock(n, (0, BYTES as u64, true));
        }
        let counts = self.world.locks.counts();
        assert_eq!((counts.locks, counts.waiting), (0, 0), "seed {seed}");
        assert_eq!(self.world.nlm.blocked(), 0, "seed {seed}");
        self.world.pass_grace();
        self.world.nlm.sweep();
        assert_eq!(self.world.nlm.hosts(), [], "seed {seed}");
        assert_eq!(self.world.on_record(), 0, "seed {seed}");
    }
}

fn run(seed: u64) {
    let mut sim = Sim::new(seed);
    for step in 0..STEPS {
        sim.step();
        sim.check(&format!("seed {seed}, step {step}"));
    }
    sim.end(seed);
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_client_believes_to_hold_what_another_holds() {
    match asked("PLIMSOLL_SIM_SEED") {
        Some(seed) => run(seed),
        None => (0..asked("PLIMSOLL_SIM_SEEDS").unwrap_or(SEEDS)).for_each(run),
    }
}
