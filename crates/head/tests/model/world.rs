//! Heads, their clocks and processes, the network between them and etcd, and the lock of a cluster
//! file system, in steps of true time. All that is random comes from one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::random::{Random, SeededRandom};
use head::keys::{LeaseId, Phases};
use head::machine::{Action, Event, FenceError, Machine, Outcome, Phase, Request, Settings, Time};

use super::etcd::Etcd;

/// A step of true time.
pub const STEP_MS: u64 = 50;
/// When a request counts as unanswered, on the clock of the head.
const TIMEOUT: Duration = Duration::from_millis(900);
/// The lease in etcd.
const LEASE_MS: u64 = 3000;
/// The resources of each history.
pub const RESOURCES: [&str; 2] = ["accounts", "projects"];

/// What a history may break, and which rules are in effect.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Age of a renewal at which resources end.
    pub fence_after: Duration,
    /// etcd compares the owner key and the record of a claim.
    pub compare: bool,
    /// The file system has a lock on `owner`.
    pub lock: bool,
    /// The number in `owner` is compared.
    pub number: bool,
    /// Processes of resources are stopped too when their machine is.
    pub pauses_processes: bool,
    /// etcd may lose all that it has, as when it is made again.
    pub loses_etcd: bool,
}

impl Rules {
    /// All rules, on a file system with locks: whole machines are paused.
    pub fn fenced() -> Self {
        Self {
            fence_after: Duration::from_secs(2),
            compare: true,
            lock: true,
            number: true,
            pauses_processes: true,
            loses_etcd: true,
        }
    }

    /// Without locks: the lease alone must do, and a process that runs is never stopped.
    pub fn leases_alone() -> Self {
        let (lock, number, pauses_processes, loses_etcd) = (false, false, false, false);
        Self { lock, number, pauses_processes, loses_etcd, ..Self::fenced() }
    }
}

/// A process of a resource.
#[derive(Debug)]
struct Process {
    resource: &'static str,
    number: u64,
    lease: LeaseId,
    /// The run of the head that has started it: a later one does not see its end.
    run: u64,
    /// Whether it has started to serve.
    serves: bool,
    /// It drains until this true time.
    drains: Option<u64>,
}

/// Work that a head has begun and that is done at a true time, unless the head is paused.
#[derive(Debug)]
enum Work {
    Fence(&'static str, u64, Time),
    Start(&'static str, u64, LeaseId),
    Serve(&'static str, u64),
    Kill(&'static str, u64),
}

/// A request that is on the way to etcd, or its answer on the way back.
#[derive(Debug)]
enum Packet {
    Grant(Time),
    Renew(Time, LeaseId),
    Query(Time, Request),
    Answer(Time, Event),
}

struct Head {
    name: String,
    machine: Option<Machine>,
    /// Parts of a thousand by which its clock runs fast, and what it showed at the start.
    rate: u64,
    offset: u64,
    paused_until: u64,
    down_until: u64,
    /// Counts its starts.
    run: u64,
    cut_until: u64,
    packets: Vec<(u64, Packet)>,
    work: Vec<(u64, Work)>,
    /// Requests that wait for an answer: when they were sent.
    lease_sent: Option<Time>,
    ask_sent: Option<Time>,
    /// The lease file.
    lease: (LeaseId, Time),
    locks: BTreeMap<&'static str, u64>,
    /// Ownerships that were ended: their fences give up.
    over: BTreeSet<(&'static str, u64)>,
    processes: Vec<Process>,
}

/// All of it.
pub struct World {
    rules: Rules,
    random: SeededRandom,
    now: u64,
    etcd: Etcd,
    heads: Vec<Head>,
    /// The number in each file `owner`.
    numbers: BTreeMap<&'static str, u64>,
    /// The highest number that has written.
    written: BTreeMap<&'static str, u64>,
    no_quorum_until: u64,
    /// Drains and cut links outlast the faults.
    stay: bool,
    /// Takeovers that were acknowledged.
    pub acknowledged: u64,
    /// Claims that succeeded.
    pub takeovers: u64,
}

fn local(head: &Head, now: u64) -> Time {
    Duration::from_micros(head.offset * 1000 + now * head.rate)
}

fn settings(name: &str, rules: Rules) -> Settings {
    let resources = RESOURCES.iter().enumerate();
    let resources = resources.map(|(i, r)| ((*r).to_owned(), format!("head{i}"))).collect();
    Settings { fence_after: rules.fence_after, ..Settings::new(name, resources) }
}

impl World {
    /// Two or three heads.
    pub fn new(seed: u64, rules: Rules) -> Self {
        let mut random = SeededRandom::new(seed);
        let count = 2 + random.below(2);
        let heads = (0..count).map(|i| Head {
            name: format!("head{i}"),
            machine: Some(Machine::new(settings(&format!("head{i}"), rules))),
            rate: 950 + random.below(101),
            offset: random.below(1_000_000),
            paused_until: 0,
            down_until: 0,
            run: 0,
            cut_until: 0,
            packets: Vec::new(),
            work: Vec::new(),
            lease_sent: None,
            ask_sent: None,
            lease: (0, Duration::ZERO),
            locks: BTreeMap::new(),
            over: BTreeSet::new(),
            processes: Vec::new(),
        });
        let heads = heads.collect();
        Self {
            rules,
            random,
            now: 1000,
            etcd: Etcd::new(rules.compare),
            heads,
            numbers: BTreeMap::new(),
            written: BTreeMap::new(),
            no_quorum_until: 0,
            stay: false,
            acknowledged: 0,
            takeovers: 0,
        }
    }

    /// One step; with or without faults.
    ///
    /// # Errors
    /// Two owners could write, or an older one after a newer one.
    pub fn step(&mut self, faults: bool) -> Result<(), String> {
        self.now += STEP_MS;
        if faults {
            self.break_something();
        }
        if self.now >= self.no_quorum_until && !self.etcd.quorum {
            self.etcd.elect(self.now, LEASE_MS);
        }
        self.etcd.expire(self.now);
        for i in 0..self.heads.len() {
            self.deliver(i);
            self.run_head(i);
        }
        // Processes run in any order, and each may write once more before it looks at its lease.
        self.writes()?;
        for i in 0..self.heads.len() {
            self.run_processes(i);
        }
        Ok(())
    }

    fn break_something(&mut self) {
        // About one fault in three seconds.
        if self.random.below(60) != 0 {
            return;
        }
        let i = self.random.below(self.heads.len() as u64) as usize;
        let until = self.now + 200 + self.random.below(8000);
        match self.random.below(7) {
            0 | 1 => self.heads[i].paused_until = until,
            2 => self.heads[i].cut_until = until,
            3 => {
                self.no_quorum_until = until;
                self.etcd.quorum = false;
            }
            4 => self.crash(i, until),
            5 if self.rules.loses_etcd && self.random.below(4) == 0 => self.etcd.lose(),
            _ => self.command(i),
        }
    }

    /// The head dies; half of the time its whole machine does.
    fn crash(&mut self, i: usize, until: u64) {
        let machine_too = self.random.below(2) == 0;
        let head = &mut self.heads[i];
        head.machine = None;
        head.run += 1;
        head.down_until = until;
        head.packets.clear();
        head.work.clear();
        // A lock that no process has yet was the head's.
        head.over.clear();
        let processes = &head.processes;
        head.locks.retain(|resource, number| {
            processes.iter().any(|p| p.resource == *resource && p.number == *number)
        });
        if machine_too {
            head.processes.clear();
            head.locks.clear();
        }
    }

    fn command(&mut self, i: usize) {
        let resource = RESOURCES[self.random.below(RESOURCES.len() as u64) as usize];
        let to = format!("head{}", self.random.below(self.heads.len() as u64));
        let kind = self.random.below(8);
        let cut = (self.random.below(2) == 0).then(|| "no carrier".to_owned());
        if kind == 7 {
            // All at once: none has seen the drain of another one.
            for machine in self.heads.iter_mut().filter_map(|head| head.machine.as_mut()) {
                let _refused = machine.drain(true);
            }
            return;
        }
        let Some(machine) = &mut self.heads[i].machine else { return };
        let _refused = match kind {
            0 => machine.drain(true),
            1 => machine.drain(false),
            2 | 3 => {
                machine.set_cut(resource, cut);
                Ok(())
            }
            _ => machine.set_target(resource, &to),
        };
    }

    /// Ends all faults. Drains and cut links stay in half of the histories: as long as a head runs,
    /// each resource is to have an owner.
    pub fn heal(&mut self) {
        self.stay = self.random.below(2) == 0;
        let stay = self.stay;
        self.no_quorum_until = self.now;
        for i in 0..self.heads.len() {
            let head = &mut self.heads[i];
            (head.paused_until, head.down_until, head.cut_until) = (0, 0, 0);
            if let Some(machine) = head.machine.as_mut().filter(|_| !stay) {
                machine.drain(false).expect("the end of a drain is not refused");
                RESOURCES.iter().for_each(|resource| machine.set_cut(resource, None));
            }
        }
    }

    /// Whether each resource has one owner, which is the one that it should have.
    ///
    /// # Errors
    /// What is not so.
    pub fn settled(&self) -> Result<(), String> {
        for resource in RESOURCES {
            let phases: Vec<_> = self
                .heads
                .iter()
                .filter_map(|head| Some((head, head.machine.as_ref()?.resources().get(resource)?)))
                .collect();
            let owners: Vec<_> =
                phases.iter().filter(|(_, state)| state.phase == Phase::Owner).collect();
            let idle = phases
                .iter()
                .all(|(_, state)| matches!(state.phase, Phase::Owner | Phase::Offline));
            let [(owner, _)] = owners.as_slice() else {
                let all: Vec<_> = phases.iter().map(|(head, state)| (&head.name, state)).collect();
                return Err(format!("{resource} has {} owners: {all:?}", owners.len()));
            };
            let record = self.etcd.view().records.get(resource).map(|record| &record.value);
            let target = record.map(|record| &record.target);
            // A head that drains or is cut does not follow a command that came before.
            if !idle || !self.stay && target != Some(&owner.name) {
                return Err(format!("{resource} is at {} and not at {target:?}", owner.name));
            }
            let last = record.and_then(|record| record.last.as_ref());
            if last.is_none_or(|last| last.to != owner.name || last.phases.is_none()) {
                return Err(format!("{resource} is at {}, recorded is {last:?}", owner.name));
            }
        }
        let open = |head: &Head| head.machine.as_ref().is_some_and(Machine::has_targets);
        match self.heads.iter().any(open) {
            true => Err("a takeover was not written".to_owned()),
            false => Ok(()),
        }
    }

    /// Packets that arrive now.
    fn deliver(&mut self, i: usize) {
        let (now, quorum) = (self.now, self.etcd.quorum);
        let head = &mut self.heads[i];
        let cut = now < head.cut_until;
        let mut due = Vec::new();
        head.packets.retain_mut(|(at, packet)| {
            let arrives = *at <= now;
            if arrives {
                due.push(std::mem::replace(packet, Packet::Grant(Duration::ZERO)));
            }
            !arrives
        });
        if cut {
            return;
        }
        for packet in due {
            let answer = match packet {
                Packet::Answer(sent, event) => {
                    self.answered(i, sent, event);
                    continue;
                }
                _ if !quorum => continue,
                Packet::Grant(sent) => (sent, Event::Granted(sent, self.etcd.grant(now, LEASE_MS))),
                Packet::Renew(sent, id) => match self.etcd.renew(now, LEASE_MS, id) {
                    true => (sent, Event::Renewed(sent, id)),
                    false => (sent, Event::Expired(id)),
                },
                Packet::Query(sent, request) => {
                    let name = self.heads[i].name.clone();
                    let outcome = self.etcd.ask(&name, &request);
                    self.note(&request, &outcome);
                    (sent, Event::Answer(sent, outcome))
                }
            };
            let back = now + self.random.below(300);
            self.heads[i].packets.push((back, Packet::Answer(answer.0, answer.1)));
        }
    }

    fn note(&mut self, request: &Request, outcome: &Outcome) {
        match (request, outcome) {
            (Request::Target { .. }, Outcome::Done(_)) => self.acknowledged += 1,
            (Request::Claim { .. }, Outcome::Done(_)) => self.takeovers += 1,
            _ => {}
        }
    }

    fn answered(&mut self, i: usize, sent: Time, event: Event) {
        let head = &mut self.heads[i];
        if self.now < head.paused_until {
            // The kernel has it; the head reads it when it runs.
            head.packets.push((head.paused_until, Packet::Answer(sent, event)));
            return;
        }
        let waits = match event {
            Event::Answer(..) => &mut head.ask_sent,
            _ => &mut head.lease_sent,
        };
        if *waits == Some(sent) && local(head, self.now) < sent + TIMEOUT {
            match event {
                Event::Answer(..) => head.ask_sent = None,
                _ => head.lease_sent = None,
            }
            self.feed(i, event);
        }
    }

    fn feed(&mut self, i: usize, event: Event) {
        let now = local(&self.heads[i], self.now);
        if let Some(machine) = &mut self.heads[i].machine {
            let actions = machine.event(now, event);
            self.act(i, actions);
        }
    }

    fn act(&mut self, i: usize, actions: Vec<Action>) {
        for action in actions {
            let (delay, forth) = (self.random.below(400), self.random.below(300));
            let late = self.random.below(8) == 0;
            let (at, by) = (self.now + delay, self.now + forth);
            let head = &mut self.heads[i];
            let sent = local(head, self.now);
            match action {
                Action::Grant => {
                    head.lease_sent = Some(sent);
                    head.packets.push((by, Packet::Grant(sent)));
                }
                Action::Renew(id) => {
                    head.lease_sent = Some(sent);
                    head.packets.push((by, Packet::Renew(sent, id)));
                }
                Action::Extend(id, until) => head.lease = (id, until),
                Action::Query(request) => {
                    head.ask_sent = Some(sent);
                    head.packets.push((by, Packet::Query(sent, request)));
                }
                Action::Fence(name, number) => {
                    head.work.push((at, Work::Fence(of(&name), number, sent)));
                }
                Action::Start(name, number, lease) => {
                    head.work.push((at, Work::Start(of(&name), number, lease)));
                }
                Action::Stop(name, number) => {
                    let processes = head.processes.iter_mut();
                    for process in processes.filter(|p| p.number == number && p.resource == name) {
                        process.drains = Some(at + 500);
                    }
                }
                Action::Kill(name, number) => {
                    // The thread that does it may be late.
                    let at = if late { at + 2500 } else { at };
                    head.work.push((at, Work::Kill(of(&name), number)));
                }
            }
        }
    }

    /// What a head does in this step, if it runs.
    fn run_head(&mut self, i: usize) {
        let rules = self.rules;
        let head = &mut self.heads[i];
        if self.now < head.paused_until || self.now < head.down_until {
            return;
        }
        if head.machine.is_none() {
            head.machine = Some(Machine::new(settings(&head.name, rules)));
            (head.lease_sent, head.ask_sent) = (None, None);
            head.lease = (0, Duration::ZERO);
        }
        let now = local(head, self.now);
        let late = |sent: &Time| now >= *sent + TIMEOUT;
        if head.lease_sent.as_ref().is_some_and(late) {
            head.lease_sent = None;
            self.feed(i, Event::LeaseUnanswered);
        }
        if let Some(sent) = self.heads[i].ask_sent.filter(late) {
            self.heads[i].ask_sent = None;
            self.feed(i, Event::Answer(sent, Outcome::Unanswered));
        }
        let due = self.now;
        let mut works = Vec::new();
        self.heads[i].work.retain_mut(|(at, work)| {
            let ready = *at <= due;
            if ready {
                works.push(std::mem::replace(work, Work::Kill("", 0)));
            }
            !ready
        });
        works.into_iter().for_each(|work| self.work(i, work));
        if let Some(machine) = &mut self.heads[i].machine {
            let actions = machine.tick(now);
            self.act(i, actions);
        }
    }

    fn work(&mut self, i: usize, work: Work) {
        match work {
            Work::Fence(resource, number, since) => self.fence(i, resource, number, since),
            Work::Start(resource, number, lease) => {
                // A process looks at its lease before anything else.
                let valid = self.is_valid(i, lease);
                let head = &mut self.heads[i];
                if head.locks.get(resource) == Some(&number) && !valid {
                    head.locks.remove(resource);
                    let failed = Err("the lease is over".to_owned());
                    self.feed(i, Event::Started(resource.to_owned(), number, failed));
                } else if head.locks.get(resource) == Some(&number) {
                    let (run, serves, drains) = (head.run, false, None);
                    let process = Process { resource, number, lease, run, serves, drains };
                    head.processes.push(process);
                    let at = self.now + self.random.below(800);
                    self.heads[i].work.push((at, Work::Serve(resource, number)));
                }
            }
            Work::Serve(resource, number) => {
                let mut processes = self.heads[i].processes.iter_mut();
                let found = processes.find(|p| p.resource == resource && p.number == number);
                let outcome = found.map(|process| process.serves = true);
                let outcome = outcome.ok_or_else(|| "it has ended".to_owned());
                if let (Ok(()), Some(machine)) = (&outcome, &mut self.heads[i].machine) {
                    machine.served(resource, number, self.now, Phases::default());
                }
                self.feed(i, Event::Started(resource.to_owned(), number, outcome));
            }
            Work::Kill(resource, number) => {
                let head = &mut self.heads[i];
                head.over.insert((resource, number));
                head.processes.retain(|p| p.resource != resource || p.number != number);
                head.work.retain(|(_, work)| match work {
                    Work::Fence(r, n, _) | Work::Start(r, n, _) | Work::Serve(r, n) => {
                        (*r, *n) != (resource, number)
                    }
                    Work::Kill(..) => true,
                });
                if head.locks.get(resource) == Some(&number) {
                    head.locks.remove(resource);
                }
                let ended = Event::Ended(resource.to_owned(), number, "killed".to_owned());
                self.feed(i, ended);
            }
        }
    }

    fn fence(&mut self, i: usize, resource: &'static str, number: u64, since: Time) {
        if self.heads[i].over.contains(&(resource, number)) {
            return;
        }
        let locked = self.heads.iter().any(|head| head.locks.contains_key(resource));
        let own_process = self.heads[i].processes.iter().any(|p| p.resource == resource);
        let known = self.numbers.get(resource).copied().unwrap_or(0);
        // What served last has entered its number before: nothing is taken for another directory.
        let resources = self.heads[i].machine.as_ref().map(Machine::resources);
        let served = resources.and_then(|all| all.get(resource)).map_or(0, |one| one.served);
        assert!(!self.rules.number || served <= known, "{resource}: {known}, served was {served}");
        let outcome = if self.rules.lock && locked {
            if local(&self.heads[i], self.now) < since + Duration::from_secs(5) {
                self.heads[i].work.push((self.now + 100, Work::Fence(resource, number, since)));
                return;
            }
            Err(FenceError::Locked("another head".to_owned()))
        } else if self.rules.number && known >= number {
            Err(FenceError::Superseded(known))
        } else if own_process && !self.rules.lock {
            Err(FenceError::Failed("a process of this machine is left".to_owned()))
        } else {
            self.numbers.insert(resource, number);
            self.heads[i].locks.insert(resource, number);
            Ok(())
        };
        self.feed(i, Event::Fenced(resource.to_owned(), number, outcome));
    }

    fn process_runs(&self, head: &Head) -> bool {
        !self.rules.pauses_processes || self.now >= head.paused_until
    }

    /// What may write in this step.
    fn writes(&mut self) -> Result<(), String> {
        for resource in RESOURCES {
            let mut writers = Vec::new();
            for head in self.heads.iter().filter(|head| self.process_runs(head)) {
                let processes = head.processes.iter().filter(|p| p.resource == resource);
                writers.extend(processes.map(|p| (p.number, head.name.clone())));
            }
            if writers.len() > 1 {
                return Err(format!("{resource} has two owners at {}: {writers:?}", self.now));
            }
            for (number, name) in writers {
                let highest = self.written.entry(resource).or_default();
                if number < *highest {
                    return Err(format!("{resource}: {name} writes as {number} after {highest}"));
                }
                *highest = number;
            }
        }
        Ok(())
    }

    /// Whether a process under this lease may run.
    fn is_valid(&self, i: usize, lease: LeaseId) -> bool {
        let (id, until) = self.heads[i].lease;
        local(&self.heads[i], self.now) < until && lease == id
    }

    /// Processes look at their lease; those that drain end.
    fn run_processes(&mut self, i: usize) {
        if !self.process_runs(&self.heads[i]) {
            return;
        }
        let now = self.now;
        let processes = std::mem::take(&mut self.heads[i].processes);
        let stays = |process: &Process| {
            self.is_valid(i, process.lease) && process.drains.is_none_or(|at| now < at)
        };
        let (stay, end): (Vec<_>, Vec<_>) = processes.into_iter().partition(stays);
        self.heads[i].processes = stay;
        let ended = end.iter().map(|process| (process.resource, process.number, process.run));
        for (resource, number, run) in ended {
            let head = &mut self.heads[i];
            if head.locks.get(resource) == Some(&number) {
                head.locks.remove(resource);
            }
            // A head that is paused or gone learns of it when it looks.
            let at = head.paused_until.max(now);
            if head.machine.is_some() && run == head.run {
                head.work.push((at, Work::Kill(resource, number)));
            }
        }
    }
}

fn of(name: &str) -> &'static str {
    RESOURCES.into_iter().find(|one| *one == name).expect("a resource of the model")
}
