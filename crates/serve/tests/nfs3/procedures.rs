//! Every procedure, its errors, and the attributes that go with both.

use std::io::{Read, Write};

use wire::mount3::{self, Dirpath, DumpRes, ExportRes, MntRes, Mountstat3};
use wire::nfs3::*;
use wire::rpc::{Accepted, Auth, AuthStat, CallHeader, Denied, ReplyBody};

use crate::client::{Client, Reply, record};
use crate::server::Server;

/// Attributes that set a mode only.
pub fn mode(mode: u32) -> Sattr3 {
    Sattr3 { mode: Some(mode), ..Sattr3::default() }
}

/// A name in a directory.
pub fn at<'a>(dir: &'a [u8], name: &'a str) -> DiropArgs<'a> {
    DiropArgs { dir: Fh3(dir), name: Filename3(name.as_bytes()) }
}

/// Makes a file and returns its handle.
pub fn create(client: &mut Client<impl Read + Write>, dir: &[u8], name: &str) -> Vec<u8> {
    let how = CreateHow::Guarded(mode(0o644));
    let reply = client.call(Proc::CREATE, &CreateArgs { where_: at(dir, name), how });
    made(&reply)
}

fn made(reply: &Reply) -> Vec<u8> {
    let ok = reply.results::<CreateRes<'_>>().into_result().expect("made");
    let (before, after) = (ok.dir_wcc.before.expect("wcc"), ok.dir_wcc.after.expect("wcc"));
    assert!(before.ctime <= after.ctime);
    assert!(ok.obj_attributes.is_some());
    ok.obj.expect("handle").0.to_vec()
}

/// Writes at `offset`.
pub fn write(
    client: &mut Client<impl Read + Write>,
    file: &[u8],
    offset: u64,
    data: &[u8],
) -> WriteResOk {
    let args = WriteArgs {
        file: Fh3(file),
        offset,
        count: data.len() as u32,
        stable: StableHow::FILE_SYNC,
        data,
    };
    client.call(Proc::WRITE, &args).results::<WriteRes>().into_result().expect("written")
}

/// Reads and returns the data and whether it was the end.
pub fn read(
    client: &mut Client<impl Read + Write>,
    file: &[u8],
    offset: u64,
    count: u32,
) -> (Vec<u8>, bool) {
    let reply = client.call(Proc::READ, &ReadArgs { file: Fh3(file), offset, count });
    let ok = reply.results::<ReadRes<'_>>().into_result().expect("read");
    assert_eq!(ok.count as usize, ok.data.len());
    assert!(ok.file_attributes.is_some());
    (ok.data.to_vec(), ok.eof)
}

pub fn getattr(client: &mut Client<impl Read + Write>, file: &[u8]) -> Result<Fattr3, Nfsstat3> {
    client
        .call(Proc::GETATTR, &GetattrArgs { object: Fh3(file) })
        .results::<GetattrRes>()
        .into_result()
}

#[test]
fn mount_getattr_and_read() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    assert_eq!(getattr(&mut client, &root).unwrap().ftype, Ftype3::DIR);
    let file = create(&mut client, &root, "file");
    let written = write(&mut client, &file, 0, b"hello, world");
    assert_eq!((written.count, written.committed), (12, StableHow::FILE_SYNC));
    assert_eq!(written.file_wcc.before.unwrap().size, 0);
    assert_eq!(written.file_wcc.after.unwrap().size, 12);
    assert_eq!(read(&mut client, &file, 7, 100), (b"world".to_vec(), true));
    assert_eq!(read(&mut client, &file, 0, 5), (b"hello".to_vec(), false));
    assert_eq!(read(&mut client, &file, 50, 5), (Vec::new(), true));
    let args = CommitArgs { file: Fh3(&file), offset: 0, count: 0 };
    let commit = client.call(Proc::COMMIT, &args).results::<CommitRes>().into_result().unwrap();
    assert_eq!(commit.verf, written.verf);
    assert_eq!(commit.file_wcc.after.unwrap().size, 12);
}

#[test]
fn large_reads_and_writes() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "large");
    let data: Vec<u8> = (0..3_u32 << 20).map(|n| (n / 7 + n % 251) as u8).collect();
    for (n, part) in data.chunks(1 << 20).enumerate() {
        assert_eq!(write(&mut client, &file, (n << 20) as u64, part).count, 1 << 20);
    }
    for count in [1 << 20, 300_001, 131_073, 131_072, 65_535] {
        let mut got = Vec::new();
        loop {
            let (part, eof) = read(&mut client, &file, got.len() as u64, count);
            got.extend(part);
            if eof {
                break;
            }
        }
        assert!(got == data, "in pieces of {count}");
    }
    // More than a server gives at once: what it returns is right, and not marked as the end.
    let (part, eof) = read(&mut client, &file, 0, 2 << 20);
    assert!(part == data[..part.len()] && !eof && !part.is_empty());
}

#[test]
fn names_are_made_found_renamed_linked_and_removed() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let args = MkdirArgs { where_: at(&root, "dir"), attributes: mode(0o755) };
    let dir = made(&client.call(Proc::MKDIR, &args));
    let file = create(&mut client, &dir, "file");
    let lookup = client.call(Proc::LOOKUP, &LookupArgs { what: at(&dir, "file") });
    let found = lookup.results::<LookupRes<'_>>().into_result().unwrap();
    assert_eq!(found.object.0, file);
    assert!(found.obj_attributes.is_some() && found.dir_attributes.is_some());

    let args = LinkArgs { file: Fh3(&file), link: at(&root, "link") };
    let linked = client.call(Proc::LINK, &args).results::<LinkRes>().into_result().unwrap();
    assert_eq!(linked.file_attributes.unwrap().nlink, 2);
    assert!(linked.linkdir_wcc.after.is_some());

    let args = RenameArgs { from: at(&dir, "file"), to: at(&root, "renamed") };
    let renamed = client.call(Proc::RENAME, &args).results::<RenameRes>().into_result().unwrap();
    assert!(renamed.fromdir_wcc.after.is_some() && renamed.todir_wcc.after.is_some());
    assert_eq!(getattr(&mut client, &file).unwrap().nlink, 2, "the handle outlives the rename");

    for name in ["renamed", "link"] {
        let reply = client.call(Proc::REMOVE, &RemoveArgs { object: at(&root, name) });
        assert!(reply.results::<RemoveRes>().into_result().unwrap().after.is_some());
    }
    assert_eq!(getattr(&mut client, &file).unwrap_err(), Nfsstat3::STALE);
    let reply = client.call(Proc::RMDIR, &RmdirArgs { object: at(&root, "dir") });
    assert!(reply.results::<RmdirRes>().into_result().is_ok());
    assert_eq!(getattr(&mut client, &dir).unwrap_err(), Nfsstat3::STALE);
}

#[test]
fn links_and_special_files() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let path = Nfspath3(b"no/where\xff");
    let args = SymlinkArgs {
        where_: at(&root, "symlink"),
        symlink_attributes: mode(0o777),
        symlink_data: path,
    };
    let symlink = made(&client.call(Proc::SYMLINK, &args));
    let reply = client.call(Proc::READLINK, &ReadlinkArgs { symlink: Fh3(&symlink) });
    let ok = reply.results::<ReadlinkRes<'_>>().into_result().unwrap();
    assert_eq!((ok.data, ok.symlink_attributes.unwrap().ftype), (path, Ftype3::LNK));

    let what = MknodData::Fifo(mode(0o600));
    let fifo = made(&client.call(Proc::MKNOD, &MknodArgs { where_: at(&root, "fifo"), what }));
    assert_eq!(getattr(&mut client, &fifo).unwrap().ftype, Ftype3::FIFO);
    let what = MknodData::Other(Ftype3::REG);
    let reply = client.call(Proc::MKNOD, &MknodArgs { where_: at(&root, "bad"), what });
    assert_eq!(reply.results::<MknodRes<'_>>().status(), Nfsstat3::BADTYPE);
}

#[test]
fn setattr_access_and_guard() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "file");
    let new_attributes = Sattr3 { mode: Some(0o640), size: Some(5), ..Sattr3::default() };
    let args = SetattrArgs { object: Fh3(&file), new_attributes, guard: None };
    let wcc = client.call(Proc::SETATTR, &args).results::<SetattrRes>().into_result().unwrap();
    assert_eq!((wcc.before.unwrap().size, wcc.after.unwrap().size), (0, 5));
    let guard = Some(Nfstime3 { seconds: 1, nseconds: 1 });
    let reply = client.call(Proc::SETATTR, &SetattrArgs { guard, ..args });
    assert_eq!(reply.results::<SetattrRes>().status(), Nfsstat3::NOT_SYNC);

    let access = AccessArgs { object: Fh3(&file), access: 0x3f };
    let granted = client.call(Proc::ACCESS, &access).results::<AccessRes>().into_result().unwrap();
    assert_eq!(granted.access & 0x05, 0x05, "root reads and writes");
    assert!(granted.obj_attributes.is_some());
    (client.uid, client.gid) = (1234, 1234);
    let granted = client.call(Proc::ACCESS, &access).results::<AccessRes>().into_result().unwrap();
    // SAFETY: takes nothing, touches nothing, cannot fail.
    let privileged = unsafe { libc::geteuid() } == 0;
    // Without privilege all access uses the identity of the server, whatever the caller.
    let expected = if privileged { 0 } else { 0x05 };
    assert_eq!(granted.access & 0x05, expected, "others do not");
}

#[test]
fn create_unchecked_guarded_exclusive() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let call = |client: &mut Client, how| {
        let reply = client.call(Proc::CREATE, &CreateArgs { where_: at(&root, "f"), how });
        let result = reply.results::<CreateRes<'_>>();
        match result {
            Res::Ok(ok) => Ok(ok.obj.unwrap().0.to_vec()),
            Res::Fail(status, wcc) => {
                assert!(wcc.after.is_some(), "a failure carries the directory's attributes");
                Err(status)
            }
        }
    };
    let file = call(&mut client, CreateHow::Exclusive([7; 8])).unwrap();
    assert_eq!(call(&mut client, CreateHow::Exclusive([7; 8])), Ok(file.clone()));
    assert_eq!(call(&mut client, CreateHow::Exclusive([8; 8])), Err(Nfsstat3::EXIST));
    assert_eq!(call(&mut client, CreateHow::Guarded(mode(0o600))), Err(Nfsstat3::EXIST));
    assert_eq!(call(&mut client, CreateHow::Unchecked(mode(0o600))), Ok(file));
}

#[test]
fn failures_carry_what_they_can() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let reply = client.call(Proc::LOOKUP, &LookupArgs { what: at(&root, "nothing") });
    let Res::Fail(status, dir) = reply.results::<LookupRes<'_>>() else { panic!("found") };
    assert_eq!((status, dir.is_some()), (Nfsstat3::NOENT, true));
    let reply = client.call(Proc::REMOVE, &RemoveArgs { object: at(&root, "nothing") });
    let Res::Fail(status, wcc) = reply.results::<RemoveRes>() else { panic!("removed") };
    assert_eq!((status, wcc.after.is_some()), (Nfsstat3::NOENT, true));
    let reply = client.call(Proc::READ, &ReadArgs { file: Fh3(&root), offset: 0, count: 10 });
    let Res::Fail(status, attr) = reply.results::<ReadRes<'_>>() else { panic!("read") };
    assert_eq!((status, attr.is_some()), (Nfsstat3::ISDIR, true));
    assert!(getattr(&mut client, b"no handle of ours").is_err());
    assert_eq!(getattr(&mut client, b"").unwrap_err(), Nfsstat3::BADHANDLE);
    let args = WriteArgs {
        file: Fh3(&root),
        offset: 0,
        count: 10,
        stable: StableHow::UNSTABLE,
        data: b"short",
    };
    let reply = client.call(Proc::WRITE, &args);
    assert_eq!(reply.results::<WriteRes>().status(), Nfsstat3::INVAL);
}

/// All names of a directory, requested in replies of at most `count` bytes.
fn list(client: &mut Client, dir: &[u8], count: u32, plus: bool) -> Vec<Vec<u8>> {
    let (mut names, mut cookie, mut cookieverf) = (Vec::new(), 0, [0; 8]);
    loop {
        let eof = if plus {
            let args = ReaddirplusArgs {
                dir: Fh3(dir),
                cookie,
                cookieverf,
                dircount: count,
                maxcount: count,
            };
            let reply = client.call(Proc::READDIRPLUS, &args);
            assert!(reply.bytes.len() <= count as usize + 28);
            let ok = reply.results::<ReaddirplusRes<'_>>().into_result().unwrap();
            cookieverf = ok.cookieverf;
            for entry in ok.entries.iter() {
                cookie = entry.cookie;
                if entry.name.0 != b"." && entry.name.0 != b".." {
                    assert_eq!(entry.name_attributes.unwrap().fileid, entry.fileid);
                    assert!(entry.name_handle.is_some());
                }
                names.push(entry.name.0.to_vec());
            }
            ok.eof
        } else {
            let args = ReaddirArgs { dir: Fh3(dir), cookie, cookieverf, count };
            let reply = client.call(Proc::READDIR, &args);
            assert!(reply.bytes.len() <= count as usize + 28);
            let ok = reply.results::<ReaddirRes<'_>>().into_result().unwrap();
            assert!(ok.dir_attributes.is_some());
            cookieverf = ok.cookieverf;
            for entry in ok.entries.iter() {
                cookie = entry.cookie;
                names.push(entry.name.0.to_vec());
            }
            ok.eof
        };
        if eof {
            return names;
        }
    }
}

#[test]
fn directories_are_listed_in_parts() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let mut wanted: Vec<Vec<u8>> = vec![b".".to_vec(), b"..".to_vec()];
    for n in 0..300 {
        let name = format!("file-{n}");
        create(&mut client, &root, &name);
        wanted.push(name.into_bytes());
    }
    wanted.sort();
    for (count, plus) in [(1024, false), (65_536, false), (2048, true), (1 << 20, true)] {
        let mut names = list(&mut client, &root, count, plus);
        names.sort();
        assert_eq!(names, wanted, "replies of {count} bytes, plus: {plus}");
    }
    let args = ReaddirArgs { dir: Fh3(&root), cookie: 0, cookieverf: [0; 8], count: 100 };
    let reply = client.call(Proc::READDIR, &args);
    assert_eq!(reply.results::<ReaddirRes<'_>>().status(), Nfsstat3::TOOSMALL);
}

#[test]
fn the_file_system_describes_itself() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let reply = client.call(Proc::FSINFO, &FsinfoArgs { fsroot: Fh3(&root) });
    let info = reply.results::<FsinfoRes>().into_result().unwrap();
    assert_eq!((info.rtmax, info.wtmax), (1 << 20, 1 << 20));
    assert_eq!(info.properties, 0x1b);
    let reply = client.call(Proc::FSSTAT, &FsstatArgs { fsroot: Fh3(&root) });
    let stat = reply.results::<FsstatRes>().into_result().unwrap();
    assert!(stat.obj_attributes.is_some() && stat.fbytes <= stat.tbytes);
    let reply = client.call(Proc::PATHCONF, &PathconfArgs { object: Fh3(&root) });
    let conf = reply.results::<PathconfRes>().into_result().unwrap();
    assert!(conf.name_max == 255 && conf.no_trunc && conf.case_preserving);
    client.call(Proc::NULL, &()).results::<()>();
}

#[test]
fn mount_knows_exports_subdirectories_and_mounts() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let mkdir = |client: &mut Client, dir: &[u8], name| {
        let args = MkdirArgs { where_: at(dir, name), attributes: mode(0o755) };
        made(&client.call(Proc::MKDIR, &args))
    };
    let sub = mkdir(&mut client, &root, "sub");
    let deep = mkdir(&mut client, &sub, "deep");
    assert_eq!(client.mount("/export/t/sub/deep"), deep);
    assert_eq!(client.mount("/export/t/"), root);
    create(&mut client, &root, "file");
    let refused = [
        ("/export/other", Mountstat3::NOENT),
        ("/export", Mountstat3::NOENT),
        ("/etc", Mountstat3::NOENT),
        ("/export/t/nothing", Mountstat3::NOENT),
        ("/export/t/file", Mountstat3::NOTDIR),
        ("/export/t/../t", Mountstat3::ACCES),
    ];
    for (path, wanted) in refused {
        let reply = client.mount_call(mount3::Proc::MNT, &Dirpath(path.as_bytes()));
        let MntRes::Fail(status) = reply.results() else { panic!("{path} was mounted") };
        assert_eq!(status, wanted, "{path}");
    }
    let reply = client.mount_call(mount3::Proc::EXPORT, &());
    assert_eq!(reply.results::<ExportRes<'_>>().0[0].dir.0, b"/export/t");
    let mounted = |client: &mut Client| {
        let reply = client.mount_call(mount3::Proc::DUMP, &());
        reply.results::<DumpRes<'_>>().0.iter().map(|m| m.directory.0.to_vec()).collect::<Vec<_>>()
    };
    assert!(mounted(&mut client).contains(&b"/export/t/sub/deep".to_vec()));
    client.mount_call(mount3::Proc::UMNT, &Dirpath(b"/export/t/sub/deep")).results::<()>();
    assert!(!mounted(&mut client).contains(&b"/export/t/sub/deep".to_vec()));
    client.mount_call(mount3::Proc::UMNTALL, &()).results::<()>();
    assert!(mounted(&mut client).is_empty());
    // A client need not unmount a share that was removed; one that returns is another one.
    client.mount("/export/t");
    assert_eq!(mounted(&mut client), [b"/export/t"]);
    let share = server.take_share_away();
    assert!(mounted(&mut client).is_empty());
    server.put_share_back(&share);
    assert!(mounted(&mut client).is_empty());
}

#[test]
fn wrong_programs_versions_procedures_and_credentials() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let header = CallHeader {
        xid: 77,
        prog: NFS_PROGRAM,
        vers: 3,
        proc: 1,
        cred: Auth::None,
        verf: Auth::None,
    };
    let args = GetattrArgs { object: Fh3(&root) };
    let raw = Auth::Raw { flavor: 6, body: b"gss!" };
    let mut ask = |header: CallHeader<'_>| {
        client.send(&record(header, &args));
        client.receive()
    };
    let accepted = [
        (CallHeader { prog: 100_099, ..header }, Accepted::ProgUnavail),
        (CallHeader { vers: 5, ..header }, Accepted::ProgMismatch { low: 3, high: 4 }),
        (CallHeader { proc: 22, ..header }, Accepted::ProcUnavail),
        (CallHeader { proc: 0, ..header }, Accepted::GarbageArgs),
        (CallHeader { proc: 3, ..header }, Accepted::GarbageArgs),
        (header, Accepted::Success),
    ];
    for (header, wanted) in accepted {
        let reply = ask(header);
        let ReplyBody::Accepted { stat, .. } = reply.open().0 else { panic!("{header:?}") };
        assert_eq!((reply.xid, stat), (77, wanted), "{header:?}");
    }
    let reply = ask(CallHeader { cred: raw, ..header });
    let wanted = ReplyBody::Denied(Denied::AuthError(AuthStat::TOOWEAK));
    assert_eq!(reply.open().0, wanted);
}

#[test]
fn operations_are_recorded() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    client.uid = 500;
    getattr(&mut client, &root).unwrap();
    getattr(&mut client, b"x").unwrap_err();
    let records = server.records(3);
    let nfs: Vec<_> = records.iter().filter(|r| r.protocol == 1).collect();
    assert_eq!(nfs.len(), 2);
    assert_eq!((nfs[0].op, nfs[0].user, nfs[0].status), (1, 500, 0));
    assert!(nfs[0].share != 0 && nfs[0].file != 0 && nfs[0].client != 0);
    assert!(nfs[0].latency_ns > 0 && nfs[0].done_ns > nfs[0].latency_ns);
    assert_ne!(nfs[1].status, 0);
    assert!(records.iter().any(|r| r.protocol == 2 && r.op == 1));
}

/// A client reads a program to run it, and only its own kernel knows why it reads (RFC 1813 §4.4).
#[test]
fn execute_permission_allows_to_read_a_file() {
    /// `ACCESS3_READ` and `ACCESS3_EXECUTE`.
    const READ: u32 = 1;
    const EXECUTE: u32 = 0x20;
    let fs = vfs::mem::MemFs::new(vfs::share::tag("t"), 1 << 30);
    let server = Server::start(fs, crate::server::Options::default());
    let (mut client, root) = server.client();
    for (name, bits, expected) in [("run", 0o711, Nfsstat3::OK), ("no", 0o600, Nfsstat3::ACCES)] {
        client.uid = 0;
        let how = CreateHow::Guarded(mode(bits));
        let args = CreateArgs { where_: at(&root, name), how };
        let made = client.call(Proc::CREATE, &args);
        let made = made.results::<CreateRes<'_>>().into_result().expect("made");
        let file = made.obj.expect("a handle");
        client.uid = 1000;
        let reply = client.call(Proc::READ, &ReadArgs { file, offset: 0, count: 10 });
        assert_eq!(reply.results::<ReadRes<'_>>().status(), expected, "{name}");
        let asked = AccessArgs { object: file, access: READ | EXECUTE };
        let reply = client.call(Proc::ACCESS, &asked);
        let allowed = reply.results::<AccessRes>().into_result().expect("an answer").access;
        assert_eq!(allowed & READ, 0, "{name}: what it may is told as it is");
    }
}
