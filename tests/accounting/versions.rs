//! NFSv4 is counted operation by operation, exactly as a scripted client counts, and together with
//! NFSv3 it is `nfs`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use e2e::api::{self, Api};
use e2e::nfs4::pipe::Pipe;
use e2e::nfs4::{Client, lookup, putfh};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};

use wire::nfs4::{
    ArgOp, Bitmap4, ClientidArgs4, CloseArgs4, Component4, Createhow4, Fattr4, GetattrArgs4,
    Nfsstat4, Opaque4, OpenArgs4, OpenClaim4, OpenConfirmArgs4, Openflag4, Res4, ResOp,
    StateOwner4, Stateid4, attr4, share4,
};

use super::{BREAKDOWNS, by_key, parts_by_second, phases_add_up, totals};

/// Bytes of a WRITE and of a READ.
const BLOCK: u32 = 8192;
/// How often each is done.
const TIMES: u64 = 20;

fn work(client: &mut Client) {
    let root = client.walk("/export/data").expect("the share");
    let file = client.open(&root, "file", "owner", true).expect("a file");
    for n in 0..TIMES {
        let offset = n * u64::from(BLOCK);
        client.write(&file, offset, &vec![7; BLOCK as usize]).expect("WRITE");
        let read = client.read(&file, offset, BLOCK).expect("READ");
        assert_eq!(read.len(), BLOCK as usize);
    }
    client.lookup(&root, "nothing").expect_err("no such file");
    client.close(&file).expect("CLOSE");
}

#[test]
fn version_4_is_counted_as_its_client_counts() {
    let scratch = Scratch::new("versions");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let api = Api::new(&state);
    let from = api::now() + 1;
    api.wait_for_second(from - 1);
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, server.nfs_port()).into();
    let mut client = Client::connect(address, (0, 0), "counter", 1).expect("a session");
    client.reclaim_complete().expect("RECLAIM_COMPLETE");
    work(&mut client);
    let (mut older, root) = server.mount(0, 0);
    let calls = (0..TIMES).filter(|_| older.getattr(&root).is_ok()).count() as u64;
    let to = api::now() + 1;
    api.wait_for_second(to);

    let interval = (from, to);
    phases_add_up(&api, interval, "nfs4", &["inline"]);
    let rows = |stat: &str, more: &str| by_key(&api.data(stat, interval, more));
    for source in ["&source=store", "&source=recorder"] {
        assert_eq!(rows("nfs4.ops[op]", source), client.answered, "{source}");
        let moved = u64::from(BLOCK) * TIMES;
        let bytes = BTreeMap::from([("read".to_owned(), moved), ("write".to_owned(), moved)]);
        assert_eq!(rows("nfs4.bytes[op]", source), bytes, "{source}");
        let failed = rows("nfs4.ops[status]", source);
        assert_eq!(failed.get("NFS4ERR_NOENT"), Some(&1), "{failed:?}");
        for by in BREAKDOWNS {
            let raw = totals(&api.data("nfs4.ops", interval, source));
            let data = api.data(&format!("nfs4.ops[{by}]"), interval, source);
            assert_eq!(totals(&data), raw, "nfs4.ops[{by}] from the {source}");
            assert_eq!(parts_by_second(&data), raw, "nfs4.ops[{by}] from the {source}");
        }
        let made: u64 = client.answered.values().sum();
        let both = BTreeMap::from([("nfs3".to_owned(), calls), ("nfs4".to_owned(), made)]);
        assert_eq!(rows("nfs.ops[protocol]", source), both, "{source}");
        assert_eq!(rows("nfs.ops[client]", source).values().sum::<u64>(), calls + made);
    }
    let files = rows("nfs4.ops[op=write][file]", "");
    assert_eq!(files.values().copied().collect::<Vec<_>>(), [TIMES], "{files:?}");
}

/// The stateid that an OPEN or OPEN_CONFIRM has given.
fn stateid(reply: &e2e::nfs4::Reply) -> Stateid4 {
    let found = reply.results().expect("results").iter().find_map(|result| match result {
        ResOp::Open(Res4::Ok(ok)) => Some(ok.stateid),
        ResOp::OpenConfirm(Res4::Ok(ok)) => Some(ok.stateid),
        _ => None,
    });
    found.expect("a stateid")
}

/// A client of 4.0, from its first word on: what it has done, by name.
fn work_of_4_0(pipe: &mut Pipe) -> BTreeMap<String, u64> {
    let owner = StateOwner4 { clientid: pipe.id, owner: Opaque4(b"owner") };
    let open = ArgOp::Open(OpenArgs4 {
        seqid: 1,
        share_access: share4::ACCESS_BOTH,
        share_deny: share4::DENY_NONE,
        owner,
        openhow: Openflag4::Create(Createhow4::Unchecked(Fattr4::NONE)),
        claim: OpenClaim4::Null(Component4(b"old")),
    });
    let path = [ArgOp::Putrootfh(()), lookup("export"), lookup("data"), open, ArgOp::Getfh(())];
    let reply = pipe.one(&path).expect("OPEN");
    let file = e2e::nfs4::handle(&reply).expect("GETFH");
    let confirm = OpenConfirmArgs4 { open_stateid: stateid(&reply), seqid: 2 };
    let reply = pipe.one(&[putfh(&file), ArgOp::OpenConfirm(confirm)]).expect("OPEN_CONFIRM");
    let attr_request = Bitmap4::of(&[attr4::SIZE]);
    let look = vec![putfh(&file), ArgOp::Getattr(GetattrArgs4 { attr_request })];
    pipe.batch(&vec![look; 3]).expect("GETATTR");
    // What stands behind an operation that fails is not done, and not counted.
    let missing = [ArgOp::Putrootfh(()), lookup("nothing"), ArgOp::Getfh(()), ArgOp::Getfh(())];
    assert_eq!(pipe.one(&missing).expect("an answer").status, Nfsstat4::NOENT);
    let renew = ArgOp::Renew(ClientidArgs4 { clientid: pipe.id });
    pipe.one(&[renew]).expect("RENEW");
    let close = CloseArgs4 { seqid: 3, open_stateid: stateid(&reply) };
    pipe.one(&[putfh(&file), ArgOp::Close(close)]).expect("CLOSE").last().expect("closed");
    let done = [
        ("setclientid", 1),
        ("setclientid_confirm", 1),
        ("putrootfh", 2),
        ("lookup", 3),
        ("open", 1),
        ("getfh", 1),
        ("putfh", 5),
        ("open_confirm", 1),
        ("getattr", 3),
        ("renew", 1),
        ("close", 1),
    ];
    done.into_iter().map(|(op, count)| (op.to_owned(), count)).collect()
}

#[test]
fn version_4_0_is_counted_as_its_client_counts() {
    let scratch = Scratch::new("version-40");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let api = Api::new(&state);
    let from = api::now() + 1;
    api.wait_for_second(from - 1);
    let mut pipe = Pipe::connect(server.nfs(), 0, "counter", 1).expect("a client id");
    let done = work_of_4_0(&mut pipe);
    let to = api::now() + 1;
    api.wait_for_second(to);
    for source in ["&source=store", "&source=recorder"] {
        assert_eq!(by_key(&api.data("nfs4.ops[op]", (from, to), source)), done, "{source}");
    }
    assert_eq!(pipe.done, done.values().sum::<u64>());
}
