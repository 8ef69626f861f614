//! The state of NFSv4 under a seeded simulation: clients of 4.0 and 4.1 that keep to the protocol,
//! against the real server, over a network that loses, repeats and reorders what it carries, while
//! clients crash or fall silent and the server restarts. After every step the server is compared
//! with the simplest model of its state ([`model`]).
//!
//! `PLIMSOLL_SIM_SEED=N` runs one seed and prints all events, `PLIMSOLL_SIM_SEEDS=N` runs N seeds.

mod dice;
mod host;
mod model;
mod server;
mod wire;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::limits::NFS4_COURTESY;

use dice::Dice;
use host::{Host, Post};
use model::{Model, Observation, Verdict};
use server::{LEASE_NS, Server};
use wire::{Reply, Request};

const SEEDS: u64 = 4_000;
const STEPS: usize = 300;
/// Events that a failure shows.
const SHOWN: usize = 40;

/// A message in flight.
#[derive(Clone)]
enum Packet {
    Request(Arc<Request>),
    Reply(usize, u64, Reply),
}

/// What has happened.
enum Event {
    Done(Arc<Request>, Reply),
    Received(usize, u64),
    Lost,
    Repeated,
    Crashed(usize),
    Silent(usize),
    Restarted,
    Jumped,
}

struct Sim {
    server: Server,
    hosts: Vec<Host>,
    model: Model,
    net: Vec<Packet>,
    dice: Dice,
    number: u64,
    events: VecDeque<(u64, Event)>,
}

impl Sim {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let hosts = 2 + dice.roll(3) as usize;
        let hosts = (0..hosts).map(|n| Host::new(n, dice.roll(3) as u32)).collect();
        let (server, model) = (Server::new(), Model::default());
        let events = VecDeque::new();
        Self { server, hosts, model, net: Vec::new(), dice, number: 0, events }
    }

    fn note(&mut self, event: Event) {
        if self.events.len() >= SHOWN {
            self.events.pop_front();
        }
        self.events.push_back((self.server.now(), event));
    }

    fn step(&mut self) -> Verdict {
        self.server.clock.advance(Duration::from_nanos(self.dice.roll(LEASE_NS / 80)));
        match self.dice.roll(100) {
            0..=45 => self.deliver()?,
            46..=84 => self.act(false),
            85..=86 => self.act(true),
            87..=89 => self.lose(),
            90..=92 => self.repeat(),
            93 => {
                let host = self.any_host();
                self.hosts[host].crash();
                self.note(Event::Crashed(host));
            }
            94 => {
                let (host, time) = (self.any_host(), self.dice.roll(3 * LEASE_NS));
                self.hosts[host].silent_until = self.server.now() + time;
                self.note(Event::Silent(host));
            }
            95 => {
                let time = self.dice.roll(LEASE_NS);
                self.server.clock.advance(Duration::from_nanos(time));
                self.note(Event::Jumped);
            }
            96 if self.dice.once_in(2) => self.restart(),
            _ => {
                self.server.sweep();
                self.model.swept(&self.server.clients(), self.server.now())?;
            }
        }
        self.hosts.iter().try_for_each(|host| host.check(&self.model))
    }

    fn any_host(&mut self) -> usize {
        self.dice.roll(self.hosts.len() as u64) as usize
    }

    fn restart(&mut self) {
        let over = self.server.now() >= self.server.grace_until;
        if over && self.hosts.iter().any(Host::is_half_way) {
            return;
        }
        self.server.restart();
        self.model.restarted(self.server.now(), self.server.grace_until);
        self.note(Event::Restarted);
    }

    fn act(&mut self, probe: bool) {
        let (now, host) = (self.server.now(), self.any_host());
        if self.hosts[host].silent_until > now {
            return;
        }
        let mut out = Vec::new();
        let handles = &self.server.handles;
        let mut post = Post { number: &mut self.number, out: &mut out, handles, now };
        match probe {
            true => self.hosts[host].probe(&mut self.dice, &mut post),
            false => self.hosts[host].act(&mut self.dice, &mut post),
        }
        self.net.extend(out.into_iter().map(Packet::Request));
    }

    fn pick(&mut self) -> Option<usize> {
        let count = self.net.len() as u64;
        (count > 0).then(|| self.dice.roll(count) as usize)
    }

    fn lose(&mut self) {
        if let Some(at) = self.pick() {
            self.net.swap_remove(at);
            self.note(Event::Lost);
        }
    }

    fn repeat(&mut self) {
        if let Some(at) = self.pick() {
            self.net.push(self.net[at].clone());
            self.note(Event::Repeated);
        }
    }

    fn deliver(&mut self) -> Verdict {
        let Some(at) = self.pick() else { return Ok(()) };
        match self.net.swap_remove(at) {
            Packet::Request(request) => self.serve(request),
            Packet::Reply(host, number, reply) => {
                if self.hosts[host].silent_until > self.server.now() {
                    return Ok(());
                }
                self.note(Event::Received(host, number));
                self.hosts[host].receive(number, &reply)
            }
        }
    }

    fn serve(&mut self, request: Arc<Request>) -> Verdict {
        let before = self.server.table();
        let bytes = self.server.run(&request.bytes);
        let (reply, after) = (wire::reply(&bytes), self.server.table());
        self.note(Event::Done(request.clone(), reply));
        let clients = self.server.clients();
        // The client that a confirmation is about is the one it names.
        self.model.observe(&Observation {
            request: &request,
            reply,
            bytes: &bytes,
            before: &before,
            after: &after,
            clients,
            now: self.server.now(),
        })?;
        self.net.push(Packet::Reply(request.host, request.number, reply));
        Ok(())
    }

    /// All have gone, and nothing of them is left.
    fn end(&mut self) -> Verdict {
        self.server.clock.advance(NFS4_COURTESY + Duration::from_nanos(LEASE_NS));
        self.server.sweep();
        match self.server.counts() {
            [0, 0, 0, 0, 0, 0] => Ok(()),
            left => {
                Err(format!("left of clients, sessions, states, names, opens, locks: {left:?}"))
            }
        }
    }

    fn print_events(&self) {
        static ONE_BY_ONE: Mutex<()> = Mutex::new(());
        let _alone = ONE_BY_ONE.lock();
        for (now, event) in &self.events {
            let at = *now / 1_000_000;
            match event {
                Event::Done(r, reply) => println!(
                    "{at:8} ms  host {} client {:x} request {} slot {:?}: {:x?} -> {:?} {:x?}",
                    r.host,
                    r.clientid,
                    r.number,
                    r.slot.map(|s| (s.slotid, s.sequenceid)),
                    r.what,
                    reply.status,
                    reply.content
                ),
                Event::Received(host, number) => {
                    println!("{at:8} ms  host {host} has the reply to {number}");
                }
                Event::Lost => println!("{at:8} ms  a packet is lost"),
                Event::Repeated => println!("{at:8} ms  a packet is repeated"),
                Event::Crashed(host) => println!("{at:8} ms  host {host} crashes"),
                Event::Silent(host) => println!("{at:8} ms  host {host} goes silent"),
                Event::Restarted => println!("{at:8} ms  the server restarts"),
                Event::Jumped => println!("{at:8} ms  time goes by"),
            }
        }
    }
}

/// Runs a seed; prints the events before a failure.
fn run(seed: u64) -> Verdict {
    let mut sim = Sim::new(seed);
    for step in 0..STEPS {
        if let Err(what) = sim.step() {
            sim.print_events();
            return Err(format!("seed {seed}, step {step}: {what}"));
        }
    }
    sim.end().map_err(|what| format!("seed {seed}, at the end: {what}"))
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_state_holds_under_loss_repetition_reordering_and_restarts() {
    if let Some(seed) = asked("PLIMSOLL_SIM_SEED") {
        run(seed).unwrap();
        return;
    }
    let (seeds, next) = (asked("PLIMSOLL_SIM_SEEDS").unwrap_or(SEEDS), AtomicU64::new(0));
    let work = || {
        let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        mine.take_while(|seed| *seed < seeds).try_for_each(run)
    };
    let outcomes = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for outcome in outcomes {
        outcome.expect("no panic").unwrap();
    }
}
