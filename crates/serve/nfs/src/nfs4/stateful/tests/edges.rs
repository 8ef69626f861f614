//! The edge conditions of RFC 8881 §8.4.3 as seeded histories: a server that restarts or is taken
//! over repeatedly, also within a grace period, and clients that do not reach it for longer than
//! their lease, or in the middle of a reclaim. No client reclaims a lock that another one has
//! had since; none loses one that it has renewed and reclaimed in time. Each record is needed: with
//! one of them left out a history is found that fails.

use std::collections::BTreeMap;
use std::sync::Mutex;

use base::random::{Random, SeededRandom, SystemRandom};

use super::super::super::state::{NotWritten, Records};
use super::*;

const HISTORIES: u64 = 10_000;
const STEPS: usize = 60;
const CLIENTS: usize = 3;
const NAMES: [&[u8]; CLIENTS] = [b"a", b"b", b"c"];
/// A pause: at most half of a lease.
const PAUSE_MAX_S: u64 = LEASE_S / 2;

/// What of the records is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// A client that was expired stays on record.
    Expired,
    /// A client that has not come back within the grace period stays on record.
    Absent,
}

/// Records as they are on disk: with whether the client has been recorded since the last start.
struct Disk {
    fault: Fault,
    clients: Mutex<BTreeMap<Vec<u8>, bool>>,
}

impl Disk {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<Vec<u8>, bool>) -> T) -> T {
        work(&mut self.clients.lock().expect("no panic"))
    }

    /// The clients on record, as a server reads them at its start.
    fn known(&self) -> Vec<Identity> {
        let names: Vec<_> = self.with(|clients| {
            clients.values_mut().for_each(|since| *since = false);
            clients.keys().cloned().collect()
        });
        names.into_iter().map(|name| Identity { name: (true, name), principal: 0 }).collect()
    }
}

impl Records for Disk {
    fn record(&self, client: &Identity) -> Result<(), NotWritten> {
        self.with(|clients| clients.insert(client.name.1.clone(), true));
        Ok(())
    }

    fn forget(&self, client: &Identity) -> Result<(), NotWritten> {
        if self.fault != Fault::Expired {
            self.with(|clients| clients.remove(&client.name.1));
        }
        Ok(())
    }

    fn end_of_grace(&self) -> Result<(), NotWritten> {
        if self.fault != Fault::Absent {
            self.with(|clients| clients.retain(|_, since| *since));
        }
        Ok(())
    }
}

/// A client that follows the protocol.
#[derive(Debug, Clone, Copy, Default)]
struct Host {
    /// Its session and the last number in the slot; none after it has learned that it is gone.
    session: Option<([u8; 16], u32)>,
    /// The number of the server that the session is of.
    server: u64,
    /// When it last reached that server.
    reached: u64,
    open: Option<Stateid4>,
    lock: Option<Stateid4>,
    /// When it got the lock that it takes for its own, by the count of all grants.
    granted: Option<u64>,
    /// Whether it has reached each server in time since then.
    in_time: bool,
}

/// What a run of histories has met.
#[derive(Debug, Default, Clone, Copy)]
struct Met {
    reclaimed: u64,
    refused: u64,
    restarts_in_grace: u64,
}

struct History {
    disk: Arc<Disk>,
    world: World,
    keeper: Arc<Stateful>,
    random: SeededRandom,
    /// The number of the server, when it started, and the time, in seconds.
    server: u64,
    started: u64,
    now: u64,
    hosts: [Host; CLIENTS],
    /// Grants so far, and the last one to each client.
    grants: u64,
    last: [u64; CLIENTS],
    met: Met,
}

fn start(number: u64, disk: &Arc<Disk>) -> (World, Arc<Stateful>) {
    let (world, keeper) = World::started(number as u32, disk.known(), disk.clone());
    let shares = world.nfs.shares.load();
    let fs = Arc::clone(&shares.iter().next().expect("the share").fs);
    drop(shares);
    let how = CreateHow::Guarded(SetAttr::default());
    assert!(fs.create(cx(&world.cred), &fs.root(), b"f", how).is_ok());
    (world, keeper)
}

impl History {
    fn new(seed: u64, fault: Fault) -> Self {
        let disk = Arc::new(Disk { fault, clients: Mutex::default() });
        let (world, keeper) = start(1, &disk);
        Self {
            disk,
            world,
            keeper,
            random: SeededRandom::new(seed),
            server: 1,
            started: 0,
            now: 0,
            hosts: [Host::default(); CLIENTS],
            grants: 0,
            last: [0; CLIENTS],
            met: Met::default(),
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.random.next_u64() % sides
    }

    fn step(&mut self) -> Result<(), String> {
        let host = self.roll(CLIENTS as u64) as usize;
        match self.roll(16) {
            0..=3 => {
                let pause = 1 + self.roll(PAUSE_MAX_S);
                self.now += pause;
                self.world.clock.advance(Duration::from_secs(pause));
                self.keeper.sweep();
            }
            4 => self.restart(),
            5..=8 => self.lock(host)?,
            9 => self.unlock(host)?,
            _ => self.renew(host)?,
        }
        Ok(())
    }

    /// The server ends and another one starts, with what is on disk.
    fn restart(&mut self) {
        for n in 0..CLIENTS {
            self.hosts[n].in_time = self.is_safe(n);
        }
        let grace = self.now < self.started + LEASE_S && !self.disk.known().is_empty();
        self.met.restarts_in_grace += u64::from(grace);
        self.server += 1;
        (self.world, self.keeper) = start(self.server, &self.disk);
        self.started = self.now;
    }

    /// Whether the server must keep the lock of a client for it, so far.
    fn is_safe(&self, n: usize) -> bool {
        let host = &self.hosts[n];
        let since = if host.server == self.server { host.reached } else { self.started };
        host.granted.is_some() && host.in_time && self.now < since + LEASE_S
    }

    /// Runs a compound in the session of a client; a session that is gone is noted.
    fn run(&mut self, n: usize, ops: &[ArgOp<'_>]) -> Option<(Nfsstat4, Option<Stateid4>)> {
        let (session, slot) = self.hosts[n].session?;
        let all = [&[sequence(session, slot + 1)], &ROOT[..], &[file()], ops].concat();
        let (status, stateid) = results(&self.world.bytes(1, &all));
        if matches!(status, Nfsstat4::BADSESSION | Nfsstat4::DEADSESSION) {
            self.hosts[n].session = None;
            return None;
        }
        self.hosts[n].session = Some((session, slot + 1));
        (self.hosts[n].server, self.hosts[n].reached) = (self.server, self.now);
        Some((status, stateid))
    }

    fn renew(&mut self, n: usize) -> Result<(), String> {
        if self.run(n, &[]).is_some() { Ok(()) } else { self.come_back(n) }
    }

    fn lock(&mut self, n: usize) -> Result<(), String> {
        if self.hosts[n].granted.is_some() || self.hosts[n].session.is_none() {
            return self.renew(n);
        }
        if self.hosts[n].open.is_none() {
            let open = opening(OpenClaim4::Fh(()));
            let Some((status, stateid)) = self.run(n, &[open]) else { return self.come_back(n) };
            if status != Nfsstat4::OK {
                return Ok(());
            }
            self.hosts[n].open = stateid;
        }
        let Some(open) = self.hosts[n].open else { return Ok(()) };
        // The lease may expire during the request: this is determined before it.
        let safe: Vec<_> =
            (0..CLIENTS).filter(|other| *other != n && self.is_safe(*other)).collect();
        match self.run(n, &[locking(open, false)]) {
            None => self.come_back(n),
            Some((Nfsstat4::OK, lock)) => {
                self.grants += 1;
                self.last[n] = self.grants;
                let granted = Some(self.grants);
                let host = self.hosts[n];
                self.hosts[n] = Host { lock, granted, in_time: true, ..host };
                match safe.first() {
                    Some(other) => Err(format!("client {n} got the lock of client {other}")),
                    None => Ok(()),
                }
            }
            Some((Nfsstat4::BAD_STATEID | Nfsstat4::EXPIRED, _)) => {
                self.hosts[n].open = None;
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }

    fn unlock(&mut self, n: usize) -> Result<(), String> {
        let Some(lock_stateid) = self.hosts[n].lock else { return self.renew(n) };
        let (locktype, seqid, length) = (locktype4::WRITE, 0, u64::MAX);
        let unlock = LockuArgs4 { locktype, seqid, lock_stateid, offset: 0, length };
        match self.run(n, &[ArgOp::Locku(unlock)]) {
            None => self.come_back(n),
            Some((status, _)) => {
                let safe = self.is_safe(n);
                (self.hosts[n].lock, self.hosts[n].granted) = (None, None);
                match status {
                    Nfsstat4::OK => Ok(()),
                    other if safe => Err(format!("client {n} has lost its lock: {other}")),
                    _ => {
                        self.hosts[n].open = None;
                        Ok(())
                    }
                }
            }
        }
    }

    /// A client makes itself known, and reclaims what it takes for its own; it may be cut off
    /// before each of its requests.
    fn come_back(&mut self, n: usize) -> Result<(), String> {
        let safe = self.is_safe(n);
        let session = self.world.session(NAMES[n]);
        let host = self.hosts[n];
        self.hosts[n] = Host { session: Some((session, 0)), open: None, lock: None, ..host };
        let is_through = host.granted.is_none() || self.reclaim(n, safe)?;
        if !is_through || self.roll(8) == 0 {
            // Until it has stated that it is done it has not reached the server in that sense.
            let Host { server, reached, .. } = host;
            self.hosts[n] = Host { session: None, server, reached, ..self.hosts[n] };
            return Ok(());
        }
        let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
        self.run(n, &[done]);
        Ok(())
    }

    /// Whether it got through all of it.
    fn reclaim(&mut self, n: usize, safe: bool) -> Result<bool, String> {
        let open = self.run(n, &[opening(OpenClaim4::Previous(delegation4::NONE))]);
        let Some((Nfsstat4::OK, Some(open))) = open else { return self.lost(n, safe, open) };
        self.hosts[n].open = Some(open);
        if self.roll(6) == 0 {
            return Ok(false);
        }
        let lock = self.run(n, &[locking(open, true)]);
        let Some((Nfsstat4::OK, stateid)) = lock else { return self.lost(n, safe, lock) };
        self.hosts[n].lock = stateid;
        self.met.reclaimed += 1;
        let since = self.hosts[n].granted.unwrap_or_default();
        if let Some(other) = (0..CLIENTS).find(|other| *other != n && self.last[*other] > since) {
            return Err(format!("client {n} reclaimed a lock that client {other} had meanwhile"));
        }
        Ok(self.roll(6) > 0)
    }

    /// A reclaim was refused: it knows now that the lock is gone.
    fn lost(
        &mut self,
        n: usize,
        safe: bool,
        refusal: Option<(Nfsstat4, Option<Stateid4>)>,
    ) -> Result<bool, String> {
        if safe {
            return Err(format!("client {n} has lost its lock: {refusal:?}"));
        }
        self.met.refused += 1;
        let host = self.hosts[n];
        self.hosts[n] = Host { lock: None, open: None, granted: None, ..host };
        Ok(true)
    }
}

/// OPEN of the current file by the only owner of a client.
fn opening(claim: OpenClaim4<'static>) -> ArgOp<'static> {
    ArgOp::Open(OpenArgs4 {
        seqid: 0,
        share_access: share4::ACCESS_BOTH | share4::WANT_NO_DELEG,
        share_deny: 0,
        owner: StateOwner4 { clientid: 0, owner: Opaque4(b"o") },
        openhow: Openflag4::Nocreate(()),
        claim,
    })
}

/// LOCK of the whole file.
fn locking(open_stateid: Stateid4, reclaim: bool) -> ArgOp<'static> {
    let ArgOp::Lock(lock) = lock_new(0, open_stateid, 0) else { unreachable!() };
    ArgOp::Lock(LockArgs4 { reclaim, ..lock })
}

/// The status of a compound, and the stateid that its last operation gave.
fn results(bytes: &[u8]) -> (Nfsstat4, Option<Stateid4>) {
    let mut r = Reader::new(bytes);
    let head = CompoundRes::decode(&mut r).expect("a head");
    let mut stateid = None;
    for _ in 0..head.count {
        match ResOp::decode(&mut r).expect("a result") {
            ResOp::Open(Res4::Ok(ok)) => stateid = Some(ok.stateid),
            ResOp::Lock(LockRes4::Ok(ok)) => stateid = Some(ok.stateid),
            _ => {}
        }
    }
    (head.status, stateid)
}

fn history(seed: u64, fault: Fault) -> Result<Met, String> {
    let mut history = History::new(seed, fault);
    for _ in 0..STEPS {
        history.step()?;
    }
    Ok(history.met)
}

#[test]
fn no_lock_is_reclaimed_that_another_client_has_had_and_none_is_lost() {
    let first = match std::env::var("SEED").as_deref() {
        Ok("random") => SystemRandom.next_u64() >> 16,
        Ok(seed) => seed.parse().expect("SEED is a number"),
        Err(_) => 1,
    };
    let mut met = Met::default();
    for seed in first..first + HISTORIES {
        let one = history(seed, Fault::None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        met.reclaimed += one.reclaimed;
        met.refused += one.refused;
        met.restarts_in_grace += one.restarts_in_grace;
    }
    println!("{HISTORIES} histories: {met:?}");
    let enough = met.reclaimed > HISTORIES / 2 && met.refused > HISTORIES / 4;
    assert!(
        enough && met.restarts_in_grace > HISTORIES / 4,
        "the histories are too quiet: {met:?}"
    );
}

#[test]
fn each_record_is_needed() {
    for fault in [Fault::Expired, Fault::Absent] {
        let found =
            (1..=HISTORIES).find_map(|seed| history(seed, fault).err().map(|why| (seed, why)));
        let (seed, why) = found.unwrap_or_else(|| panic!("no history shows {fault:?}"));
        println!("{fault:?}: seed {seed}: {why}");
        assert!(why.contains("had meanwhile"), "{fault:?}: {why}");
    }
}
