//! A file that becomes a logical unit while NFS serves it: version 3 by name and by a handle from
//! before, version 4 by name and by such a handle.

use std::sync::Arc;

use vfs::locks::LockTable;
use vfs::lun::Claim;
use wire::nfs3::*;

use crate::client::Client;
use crate::procedures::{at, create, getattr, read, write};
use crate::server::{Options, Server, directory_over};

fn lookup(client: &mut Client, dir: &[u8], name: &str) -> Result<(), Nfsstat3> {
    let args = LookupArgs { what: at(dir, name) };
    client.call(Proc::LOOKUP, &args).results::<LookupRes<'_>>().into_result().map(drop)
}

fn remove(client: &mut Client, dir: &[u8], name: &str) -> Result<(), Nfsstat3> {
    let args = RemoveArgs { object: at(dir, name) };
    client.call(Proc::REMOVE, &args).results::<RemoveRes>().into_result().map(drop)
}

fn rename(client: &mut Client, dir: &[u8], from: &str, to: &str) -> Result<(), Nfsstat3> {
    let args = RenameArgs { from: at(dir, from), to: at(dir, to) };
    client.call(Proc::RENAME, &args).results::<RenameRes>().into_result().map(drop)
}

fn store(client: &mut Client, file: &[u8]) -> Result<(), Nfsstat3> {
    let (stable, data) = (StableHow::FILE_SYNC, &b"mine"[..]);
    let args = WriteArgs { file: Fh3(file), offset: 0, count: 4, stable, data };
    client.call(Proc::WRITE, &args).results::<WriteRes>().into_result().map(drop)
}

#[test]
fn version_3_does_not_reach_a_logical_unit() {
    let locks: Arc<LockTable> = Arc::default();
    let (fs, folder) = directory_over(&locks);
    let server = Server::start(fs, Options::default());
    let (mut client, root) = server.client();
    let disk = create(&mut client, &root, "disk");
    create(&mut client, &root, "other");
    write(&mut client, &disk, 0, b"blocks");
    std::fs::hard_link(folder.join("disk"), folder.join("second")).expect("linked");
    assert_eq!(lookup(&mut client, &root, "second"), Ok(()));

    let claim = Claim::take(&locks, &folder.join("disk"), "default/disk").expect("claimed");
    for name in ["disk", "second"] {
        assert_eq!(lookup(&mut client, &root, name), Err(Nfsstat3::NOENT));
        assert_eq!(remove(&mut client, &root, name), Err(Nfsstat3::NOENT));
        assert_eq!(rename(&mut client, &root, name, "moved"), Err(Nfsstat3::NOENT));
        assert_eq!(rename(&mut client, &root, "other", name), Err(Nfsstat3::ACCES));
    }
    assert_eq!(getattr(&mut client, &disk).err(), Some(Nfsstat3::STALE));
    assert_eq!(store(&mut client, &disk), Err(Nfsstat3::STALE));
    let args = ReadArgs { file: Fh3(&disk), offset: 0, count: 6 };
    let got = client.call(Proc::READ, &args).results::<ReadRes<'_>>().into_result().map(drop);
    assert_eq!(got, Err(Nfsstat3::STALE));
    drop(claim);
    assert_eq!(read(&mut client, &disk, 0, 10).0, b"blocks");
}
