//! The grace period, operation by operation (RFC 7530 §9.6.2, RFC 8881 §8.4.2): operations that
//! must wait for reclaims, operations on reclaimed state, and operations without state.

use super::*;

/// A compound on the file `f`, or the folder, behind a name for the table.
type Case = (&'static str, Vec<ArgOp<'static>>);

const MINORS: [u32; 3] = [0, 1, 2];

/// A caller of one minor version: its session if it has one, its owner's numbers if not.
struct Caller<'a> {
    world: &'a World,
    minor: u32,
    clientid: u64,
    session: [u8; 16],
    /// Of the compounds in the slot.
    slot: u32,
    /// Of the open-owner, and of the lock-owner.
    open: u32,
    lock: u32,
}

impl<'a> Caller<'a> {
    fn new(world: &'a World, minor: u32, name: &'static [u8]) -> Self {
        let (clientid, session) =
            if minor == 0 { (world.client40(name), [0; 16]) } else { (0, world.session(name)) };
        Self { world, minor, clientid, session, slot: 0, open: 0, lock: 0 }
    }

    fn run(&mut self, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        if self.minor == 0 {
            return self.world.run(0, ops);
        }
        self.slot += 1;
        self.world.run(self.minor, &[&[sequence(self.session, self.slot)], ops].concat())
    }

    fn at_root(&mut self, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        self.run(&[&ROOT[..], ops].concat())
    }

    fn at_file(&mut self, op: ArgOp<'_>) -> (Nfsstat4, Vec<ResOp<'static>>) {
        self.at_root(&[file(), op])
    }

    /// It has reclaimed all it held; 4.0 has no operation for that.
    fn complete(&mut self) {
        if self.minor > 0 {
            let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
            assert_eq!(self.run(&[done]).0, Nfsstat4::OK);
        }
    }

    /// OPEN without creating, of the file or of its name in the folder.
    fn open(&mut self, claim: OpenClaim4<'static>) -> ArgOp<'static> {
        self.open += 1;
        ArgOp::Open(OpenArgs4 {
            seqid: self.open,
            share_access: share4::ACCESS_BOTH,
            share_deny: 0,
            owner: StateOwner4 { clientid: self.clientid, owner: Opaque4(b"o") },
            openhow: Openflag4::Nocreate(()),
            claim,
        })
    }

    /// LOCK of a few bytes, the first one of the lock-owner under this open.
    fn lock(&mut self, open_stateid: Stateid4, reclaim: bool) -> ArgOp<'static> {
        self.open += 1;
        self.lock = 1;
        let lock_owner = StateOwner4 { clientid: self.clientid, owner: Opaque4(b"l") };
        let new =
            OpenToLockOwner4 { open_seqid: self.open, open_stateid, lock_seqid: 1, lock_owner };
        locking(reclaim, 0, Locker4::New(new))
    }

    /// Another LOCK of that owner.
    fn lock_more(&mut self, lock_stateid: Stateid4, reclaim: bool) -> ArgOp<'static> {
        self.lock += 1;
        let more = ExistLockOwner4 { lock_stateid, lock_seqid: self.lock };
        locking(reclaim, 100, Locker4::Existing(more))
    }

    fn lockt(&self) -> ArgOp<'static> {
        let owner = StateOwner4 { clientid: self.clientid, owner: Opaque4(b"t") };
        ArgOp::Lockt(LocktArgs4 { locktype: locktype4::READ, offset: 500, length: 1, owner })
    }

    fn locku(&mut self, lock_stateid: Stateid4) -> ArgOp<'static> {
        self.lock += 1;
        let (locktype, seqid) = (locktype4::WRITE, self.lock);
        ArgOp::Locku(LockuArgs4 { locktype, seqid, lock_stateid, offset: 0, length: 5 })
    }
}

fn locking(reclaim: bool, offset: u64, locker: Locker4<'static>) -> ArgOp<'static> {
    let (locktype, length) = (locktype4::WRITE, 10);
    ArgOp::Lock(LockArgs4 { locktype, reclaim, offset, length, locker })
}

fn locked(results: &[ResOp<'_>]) -> Stateid4 {
    match results.last() {
        Some(ResOp::Lock(LockRes4::Ok(ok))) => ok.stateid,
        other => panic!("{other:?}"),
    }
}

const PREVIOUS: OpenClaim4<'static> = OpenClaim4::Previous(delegation4::NONE);
const BY_NAME: OpenClaim4<'static> = OpenClaim4::Null(Component4(b"f"));

fn name(name: &'static [u8]) -> Component4<'static> {
    Component4(name)
}

fn look(at: &'static [u8]) -> ArgOp<'static> {
    ArgOp::Lookup(LookupArgs4 { objname: name(at) })
}

fn set(stateid: Stateid4, attrs: &Attrs4<'_>) -> ArgOp<'static> {
    let mut bytes = Vec::new();
    attrs.encode(&mut Writer::new(&mut bytes));
    let obj_attributes = wire::xdr::decode_all(bytes.leak()).expect("attributes");
    ArgOp::Setattr(SetattrArgs4 { stateid, obj_attributes })
}

fn read(stateid: Stateid4) -> ArgOp<'static> {
    ArgOp::Read(ReadArgs4 { stateid, offset: 0, count: 1 })
}

fn rename(oldname: &'static [u8], newname: &'static [u8]) -> Vec<ArgOp<'static>> {
    let args = RenameArgs4 { oldname: name(oldname), newname: name(newname) };
    vec![ArgOp::Savefh(()), ArgOp::Rename(args)]
}

fn link(newname: &'static [u8]) -> Vec<ArgOp<'static>> {
    let link = ArgOp::Link(LinkArgs4 { newname: name(newname) });
    let mut ops = vec![file(), ArgOp::Savefh(())];
    ops.extend(ROOT);
    ops.push(link);
    ops
}

fn remove(target: &'static [u8]) -> ArgOp<'static> {
    ArgOp::Remove(RemoveArgs4 { target: name(target) })
}

/// Operations that are refused to all clients: they need no state, and may conflict with a client's
/// state.
fn refused_to_all(minor: u32) -> Vec<Case> {
    let (none, bypass) = (Stateid4::ANONYMOUS, Stateid4::BYPASS);
    let sized = set(none, &Attrs4 { size: Some(3), ..Attrs4::default() });
    let mut cases: Vec<Case> = vec![
        ("READ, anonymous", vec![file(), read(none)]),
        ("READ, bypassing", vec![file(), read(bypass)]),
        ("WRITE, anonymous", vec![file(), write(none)]),
        ("WRITE, bypassing", vec![file(), write(bypass)]),
        ("SETATTR of the size", vec![file(), sized]),
        ("LINK", link(b"l")),
        ("RENAME of a file", rename(b"g", b"h")),
        ("RENAME over a file", rename(b"k", b"f")),
        ("REMOVE of a file", vec![remove(b"f")]),
    ];
    if minor < 2 {
        return cases;
    }
    let room = AllocateArgs4 { stateid: none, offset: 0, length: 2 };
    let copy = CopyArgs4 {
        src_stateid: none,
        dst_stateid: none,
        src_offset: 0,
        dst_offset: 2,
        count: 1,
        consecutive: true,
        synchronous: true,
        source_server: wire::xdr::Seq(Vec::new()),
    };
    let clone =
        CloneArgs4 { src_stateid: none, dst_stateid: none, src_offset: 0, dst_offset: 2, count: 1 };
    let io_advise = IoAdviseArgs4 { stateid: none, offset: 0, count: 1, hints: Bitmap4::EMPTY };
    let read_plus = ReadPlusArgs4 { stateid: none, offset: 0, count: 1 };
    let seek = SeekArgs4 { stateid: none, offset: 0, what: content4::DATA };
    let two = |op| vec![file(), ArgOp::Savefh(()), op];
    let new: [Case; 7] = [
        ("ALLOCATE", vec![file(), ArgOp::Allocate(room)]),
        ("DEALLOCATE", vec![file(), ArgOp::Deallocate(room)]),
        ("SEEK", vec![file(), ArgOp::Seek(seek)]),
        ("READ_PLUS", vec![file(), ArgOp::ReadPlus(read_plus)]),
        ("IO_ADVISE", vec![file(), ArgOp::IoAdvise(io_advise)]),
        ("COPY", two(ArgOp::Copy(copy))),
        ("CLONE", two(ArgOp::Clone(clone))),
    ];
    // Before those that take the file away.
    cases.splice(0..0, new);
    cases
}

/// Operations that conflict with no state.
fn allowed_to_all() -> Vec<Case> {
    let create = |objname| {
        let objtype = Createtype4::Other(Ftype4::DIR);
        ArgOp::Create(CreateArgs4 { objtype, objname: name(objname), createattrs: Fattr4::NONE })
    };
    let attr_request = Bitmap4::of(&[attr4::SIZE]);
    let mode = set(Stateid4::ANONYMOUS, &Attrs4 { mode: Some(0o600), ..Attrs4::default() });
    let dirs = ReaddirArgs4 {
        cookie: 0,
        cookieverf: [0; 8],
        dircount: 0,
        maxcount: 4096,
        attr_request: Bitmap4::EMPTY,
    };
    vec![
        ("GETATTR", vec![file(), ArgOp::Getattr(GetattrArgs4 { attr_request })]),
        ("ACCESS", vec![file(), ArgOp::Access(AccessArgs4 { access: 1 })]),
        ("SETATTR of the mode", vec![file(), mode]),
        ("COMMIT", vec![file(), ArgOp::Commit(CommitArgs4 { offset: 0, count: 0 })]),
        ("READDIR", vec![ArgOp::Readdir(dirs)]),
        ("CREATE", vec![create(b"new")]),
        ("RENAME of a folder", rename(b"new", b"newer")),
        ("REMOVE of a folder", vec![remove(b"newer")]),
        ("REMOVE of what is not there", vec![look(b"d"), remove(b"nothing")]),
    ]
}

/// A world with files in it; its clients of 4.0 and 4.1 called `before` may reclaim. A third one
/// may, too, but never returns, so that the period lasts until its time is over.
fn restarted() -> (World, Arc<Stateful>) {
    let known = [(false, "before"), (true, "before"), (true, "never back")];
    let known = known.map(|(sessions, name)| Identity {
        name: (sessions, name.as_bytes().to_vec()),
        principal: 0,
    });
    let (world, keeper) = World::recorded(known.to_vec(), Arc::new(NoRecords));
    let shares = world.nfs.shares.load();
    let fs = Arc::clone(&shares.iter().next().expect("the share").fs);
    drop(shares);
    let context = cx(&world.cred);
    for name in ["f", "g", "k"] {
        let how = CreateHow::Guarded(SetAttr::default());
        let made = fs.create(context, &fs.root(), name.as_bytes(), how);
        let made = made.unwrap_or_else(|failed| panic!("{failed:?}")).value;
        let wrote = fs.write(context, &made.handle, 0, b"data", vfs::fs::Stable::FileSync);
        assert!(wrote.is_ok());
    }
    assert!(fs.mkdir(context, &fs.root(), b"d", &SetAttr::default()).is_ok());
    (world, keeper)
}

/// Time passes until no client may reclaim any more.
fn end_of_grace(world: &World, keeper: &Stateful) {
    world.clock.advance(Duration::from_secs(LEASE_S));
    keeper.sweep();
}

#[test]
fn what_needs_no_state_waits_and_what_takes_none_does_not() {
    for minor in MINORS {
        let (world, keeper) = restarted();
        let mut stranger = Caller::new(&world, minor, b"stranger");
        stranger.complete();
        for (what, ops) in refused_to_all(minor) {
            assert_eq!(stranger.at_root(&ops).0, Nfsstat4::GRACE, "4.{minor}: {what}");
        }
        for (what, ops) in allowed_to_all() {
            let missing = what.ends_with("not there");
            let expected = if missing { Nfsstat4::NOENT } else { Nfsstat4::OK };
            assert_eq!(stranger.at_root(&ops).0, expected, "4.{minor}: {what}");
        }
        end_of_grace(&world, &keeper);
        for (what, ops) in refused_to_all(minor) {
            // Files in memory share no blocks.
            let expected = if what == "CLONE" { Nfsstat4::NOTSUPP } else { Nfsstat4::OK };
            assert_eq!(stranger.at_root(&ops).0, expected, "4.{minor}, later: {what}");
        }
    }
}

#[test]
fn opens_and_locks_are_for_their_former_owners() {
    for minor in MINORS {
        let (world, keeper) = restarted();
        let mut stranger = Caller::new(&world, minor, b"stranger");
        let mut before = Caller::new(&world, minor, b"before");
        stranger.complete();
        let by_name = stranger.open(BY_NAME);
        assert_eq!(stranger.at_root(&[by_name]).0, Nfsstat4::GRACE, "4.{minor}");
        let reclaim = stranger.open(PREVIOUS);
        assert_eq!(stranger.at_file(reclaim).0, Nfsstat4::NO_GRACE, "4.{minor}");
        if minor > 0 {
            let by_handle = stranger.open(OpenClaim4::Fh(()));
            assert_eq!(stranger.at_file(by_handle).0, Nfsstat4::GRACE, "4.{minor}");
        }
        let lockt = stranger.lockt();
        assert_eq!(stranger.at_file(lockt).0, Nfsstat4::GRACE, "4.{minor}");
        reclaims(&mut before);
        end_of_grace(&world, &keeper);
        let by_name = stranger.open(BY_NAME);
        assert_eq!(stranger.at_root(&[by_name]).0, Nfsstat4::OK, "4.{minor}");
        let lockt = stranger.lockt();
        assert_eq!(stranger.at_file(lockt).0, Nfsstat4::OK, "4.{minor}");
    }
}

/// A client from before the restart gets its open and its locks again, and may use them; it is not
/// granted anything new either.
fn reclaims(before: &mut Caller<'_>) {
    let minor = before.minor;
    let by_name = before.open(BY_NAME);
    assert_eq!(before.at_root(&[by_name]).0, Nfsstat4::GRACE, "4.{minor}");
    let reclaim = before.open(PREVIOUS);
    let (status, results) = before.at_file(reclaim);
    assert_eq!(status, Nfsstat4::OK, "4.{minor}");
    let open = opened(&results).0;
    let new = before.lock(open, false);
    assert_eq!(before.at_file(new).0, Nfsstat4::GRACE, "4.{minor}");
    let again = before.lock(open, true);
    let (status, results) = before.at_file(again);
    assert_eq!(status, Nfsstat4::OK, "4.{minor}");
    let lock = locked(&results);
    let more = before.lock_more(lock, false);
    assert_eq!(before.at_file(more).0, Nfsstat4::GRACE, "4.{minor}");
    let (lockt, size) = (before.lockt(), Attrs4 { size: Some(8), ..Attrs4::default() });
    assert_eq!(before.at_file(lockt).0, Nfsstat4::GRACE, "4.{minor}");
    let more = before.lock_more(lock, true);
    let (status, results) = before.at_file(more);
    assert_eq!(status, Nfsstat4::OK, "4.{minor}");
    let lock = locked(&results);
    for (what, op) in [("READ", read(open)), ("WRITE", write(open)), ("SETATTR", set(open, &size))]
    {
        assert_eq!(before.at_file(op).0, Nfsstat4::OK, "4.{minor}: {what}");
    }
    let locku = before.locku(lock);
    assert_eq!(before.at_file(locku).0, Nfsstat4::OK, "4.{minor}");
    before.open += 1;
    let seqid = before.open;
    let (share_access, share_deny) = (share4::ACCESS_BOTH, 0);
    let less = OpenDowngradeArgs4 { open_stateid: open, seqid, share_access, share_deny };
    let (status, results) = before.at_file(ArgOp::OpenDowngrade(less));
    assert_eq!(status, Nfsstat4::OK, "4.{minor}");
    let Some(ResOp::OpenDowngrade(Res4::Ok(ok))) = results.last() else { panic!("{results:?}") };
    before.open += 1;
    let close = CloseArgs4 { seqid: before.open, open_stateid: ok.stateid };
    assert_eq!(before.at_file(ArgOp::Close(close)).0, Nfsstat4::OK, "4.{minor}");
    before.complete();
    let late = before.open(PREVIOUS);
    let late = before.at_file(late).0;
    let expected = if minor == 0 { Nfsstat4::OK } else { Nfsstat4::NO_GRACE };
    assert_eq!(late, expected, "4.{minor}: from 4.1 on it has said that it is done");
}

#[test]
fn while_hosts_of_nfsv3_reclaim_locks_nothing_is_given_out_either() {
    for minor in MINORS {
        let (world, keeper) = restarted();
        keeper.state.locks.begin_grace(vfs::locks::Protocol::Nlm);
        end_of_grace(&world, &keeper);
        let mut stranger = Caller::new(&world, minor, b"stranger");
        stranger.complete();
        for (what, ops) in refused_to_all(minor) {
            assert_eq!(stranger.at_root(&ops).0, Nfsstat4::GRACE, "4.{minor}: {what}");
        }
        let by_name = stranger.open(BY_NAME);
        assert_eq!(stranger.at_root(&[by_name]).0, Nfsstat4::GRACE, "4.{minor}");
        keeper.state.locks.end_grace(vfs::locks::Protocol::Nlm);
        let by_name = stranger.open(BY_NAME);
        assert_eq!(stranger.at_root(&[by_name]).0, Nfsstat4::OK, "4.{minor}");
    }
}
