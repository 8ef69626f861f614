//! Compounds of NFSv4.1 on state: opens and their downgrades, byte-range locks that split and join
//! others, lists of stateids.

use std::collections::HashMap;

use base::random::{Random, SeededRandom};
use wire::nfs4::*;
use wire::xdr::Seq;

use crate::calls::Client;
use crate::nfs::{handle, scene};
use crate::search::worst;
use crate::tree::{self, up_to};

/// Files that are opened, and owners of opens and of locks.
const FILES: u64 = 300;
const OWNERS: u64 = 200;
/// Operations of a compound, without SEQUENCE.
const OPS_MAX: u64 = 127;
/// Stateids that are remembered.
const STATEIDS: usize = 1_000;
/// The end of the ranges that are locked.
const END: u64 = 40_000;

/// What operations are made of.
struct Names {
    clientid: u64,
    dir: Vec<u8>,
    file: Vec<u8>,
    files: Vec<String>,
    owners: Vec<String>,
}

/// State that the server has given so far.
struct State {
    /// An open of the file that is locked.
    open: Stateid4,
    /// Locks on it, by their owners.
    locks: HashMap<u64, Stateid4>,
    any: Vec<Stateid4>,
}

impl State {
    fn note(&mut self, stateid: Stateid4) {
        let at = self.any.len() % STATEIDS;
        if self.any.len() < STATEIDS { self.any.push(stateid) } else { self.any[at] = stateid }
    }
}

/// A range: one byte of two, a long one, or one without an end.
fn range(random: &mut SeededRandom) -> (u64, u64) {
    let begin = 2 * random.below(END / 2);
    match random.below(12) {
        0 => (begin, up_to(random, END)),
        1 => (begin, u64::MAX),
        _ => (begin, 1),
    }
}

impl Names {
    fn owner(&self, number: u64) -> StateOwner4<'_> {
        let owner = Opaque4(self.owners[number as usize].as_bytes());
        StateOwner4 { clientid: self.clientid, owner }
    }

    fn putfh<'a>(&self, handle: &'a [u8]) -> ArgOp<'a> {
        ArgOp::Putfh(PutfhArgs4 { object: Fh4(handle) })
    }

    fn open(&self, random: &mut SeededRandom) -> ArgOp<'_> {
        let name = Component4(self.files[random.below(FILES) as usize].as_bytes());
        let how = Createhow4::Unchecked(Fattr4::NONE);
        let creates = random.below(4) == 0;
        ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access: (1 + random.below(3) as u32) | share4::WANT_NO_DELEG,
            share_deny: if random.below(8) == 0 { random.below(4) as u32 } else { 0 },
            owner: self.owner(random.below(OWNERS)),
            openhow: if creates { Openflag4::Create(how) } else { Openflag4::Nocreate(()) },
            claim: OpenClaim4::Null(name),
        })
    }

    fn lock(&self, random: &mut SeededRandom, state: &State, owner: u64) -> ArgOp<'_> {
        let (offset, length) = range(random);
        let locker = match state.locks.get(&owner) {
            Some(stateid) => {
                Locker4::Existing(ExistLockOwner4 { lock_stateid: *stateid, lock_seqid: 0 })
            }
            None => Locker4::New(OpenToLockOwner4 {
                open_seqid: 0,
                open_stateid: state.open,
                lock_seqid: 0,
                lock_owner: self.owner(owner),
            }),
        };
        // READ_LT and WRITE_LT, and both as they may wait.
        let locktype = 1 + random.below(4) as u32;
        ArgOp::Lock(LockArgs4 { locktype, reclaim: false, offset, length, locker })
    }

    fn unlock(&self, random: &mut SeededRandom, state: &State, owner: u64) -> ArgOp<'_> {
        let (offset, length) = range(random);
        let lock_stateid = state.locks.get(&owner).copied().unwrap_or(state.open);
        ArgOp::Locku(LockuArgs4 { locktype: 2, seqid: 0, lock_stateid, offset, length })
    }

    /// A compound: what one owner does to ranges, or opens, or lists of stateids.
    fn ops(&self, random: &mut SeededRandom, state: &State) -> (String, Vec<ArgOp<'_>>) {
        let most = if random.below(4) == 0 { OPS_MAX } else { 2 + up_to(random, 30) } as usize;
        let (owner, kind) = (random.below(20), random.below(8));
        let mut ops = vec![self.putfh(&self.file)];
        while ops.len() < most {
            match kind {
                0 => ops.extend([self.putfh(&self.dir), self.open(random)]),
                1 => {
                    let (open_stateid, seqid) = (Stateid4::CURRENT, 0);
                    let (share_access, share_deny) = (1 + random.below(3) as u32, 0);
                    let args = OpenDowngradeArgs4 { open_stateid, seqid, share_access, share_deny };
                    let downgrade = ArgOp::OpenDowngrade(args);
                    ops.extend([self.putfh(&self.dir), self.open(random), downgrade]);
                }
                2 => {
                    let close = CloseArgs4 { seqid: 0, open_stateid: Stateid4::CURRENT };
                    let close = ArgOp::Close(close);
                    ops.extend([self.putfh(&self.dir), self.open(random), close]);
                }
                3 => {
                    let count = up_to(random, 1_000);
                    let one = |_| state.any[random.below(state.any.len() as u64) as usize];
                    let stateids = Seq((0..count).map(one).collect());
                    ops.push(ArgOp::TestStateid(TestStateidArgs4 { stateids }));
                    // What one request has room for.
                    if ops.len() * 16 * 1_000 > 40_000 {
                        break;
                    }
                }
                4 => {
                    let (offset, length) = range(random);
                    let owner = self.owner(random.below(OWNERS));
                    let args = LocktArgs4 { locktype: 2, offset, length, owner };
                    ops.push(ArgOp::Lockt(args));
                }
                5 => ops.push(self.unlock(random, state, owner)),
                _ => ops.push(self.lock(random, state, owner)),
            }
        }
        ops.truncate(OPS_MAX as usize);
        let last = ops.last().map_or(Opnum4::ILLEGAL, ArgOp::number);
        (format!("{} operations of owner {owner} up to {last:?}", ops.len()), ops)
    }
}

#[test]
fn of_nfs_state() {
    let folder = tree::new();
    let scene = scene(&folder);
    let mut client = Client::new(scene.addr, b"costs", vec![CallbackSec4::None(())]);
    let names = Names {
        clientid: client.id,
        dir: handle(&mut client.wire, "few"),
        file: handle(&mut client.wire, "small"),
        files: (0..FILES).map(|n| format!("{n}{}", "a".repeat(60))).collect(),
        owners: (0..OWNERS).map(|n| format!("{n}{}", "o".repeat(200))).collect(),
    };
    let openhow = Openflag4::Nocreate(());
    let open = ArgOp::Open(OpenArgs4 {
        seqid: 0,
        share_access: share4::ACCESS_BOTH | share4::WANT_NO_DELEG,
        share_deny: 0,
        owner: names.owner(0),
        openhow,
        claim: OpenClaim4::Fh(()),
    });
    let (status, mut results) = client.run(&[names.putfh(&names.file), open]);
    let Some(ResOp::Open(Res4::Ok(ok))) = results.pop() else { panic!("{status:?}") };
    let open = Stateid4 { seqid: 0, ..ok.stateid };
    let mut state = State { open, locks: HashMap::new(), any: vec![open] };
    worst("nfs4 state", |random: &mut SeededRandom| {
        let (text, ops) = names.ops(random, &state);
        let (status, results) = client.run(&ops);
        let done = results.len();
        for (op, result) in ops.iter().zip(results) {
            match (op, result) {
                (_, ResOp::Open(Res4::Ok(ok))) => state.note(ok.stateid),
                (ArgOp::Lock(args), ResOp::Lock(LockRes4::Ok(ok))) => {
                    let stateid = Stateid4 { seqid: 0, ..ok.stateid };
                    if let Locker4::New(new) = &args.locker {
                        let digits: Vec<u8> = new.lock_owner.owner.0.to_vec();
                        let text = String::from_utf8(digits).expect("digits");
                        let number = text.trim_end_matches('o').parse().expect("a number");
                        state.locks.insert(number, stateid);
                    }
                    state.note(ok.stateid);
                }
                _ => {}
            }
        }
        format!("{text}: {status:?} after {done}")
    });
}
