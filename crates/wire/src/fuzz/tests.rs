//! Makes the seeds of the fuzz targets: `cargo test -p wire write_corpus -- --ignored`.

use std::path::PathBuf;

use base::random::{Random, SeededRandom};

use super::*;
use crate::arb::{Arb, Gen};
use crate::rpc::{Accepted, Auth, ReplyBody};

/// Seeds of each message: a few shapes of each union, no more, so that the corpus stays small.
const SEEDS_EACH: u64 = 3;

struct Corpus {
    folder: PathBuf,
    written: usize,
}

impl Corpus {
    fn of(target: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let folder = folder.join(target);
        std::fs::create_dir_all(&folder).expect("corpus folder");
        Self { folder, written: 0 }
    }

    fn add(&mut self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.join(name), bytes).expect("seed");
        self.written += 1;
    }

    /// Seeds of a message, after the number that selects it.
    fn message<T: Arb<'static> + Encode>(&mut self, which: u32, name: &str) {
        for seed in 0..SEEDS_EACH {
            let mut bytes = which.to_be_bytes().to_vec();
            arbitrary::<T>(seed + u64::from(which) * 100).encode(&mut Writer::new(&mut bytes));
            self.add(&format!("{name}-{seed}"), &bytes);
        }
    }
}

impl Corpus {
    /// A head and what follows it, after the number that selects them.
    fn pair(&mut self, which: u32, name: &str, head: &impl Encode, body: &impl Encode) {
        let mut bytes = which.to_be_bytes().to_vec();
        head.encode(&mut Writer::new(&mut bytes));
        body.encode(&mut Writer::new(&mut bytes));
        self.add(name, &bytes);
    }
}

fn arbitrary<T: Arb<'static>>(seed: u64) -> T {
    let mut entropy = vec![0; 400];
    SeededRandom::new(seed).fill(&mut entropy);
    Gen::new(entropy.leak()).arb()
}

#[test]
#[ignore = "writes fuzz/corpus: run it after adding a message"]
fn write_corpus() {
    args();
    results();
    mount();
    compounds();
    locks();
    headers();
    records();
    ftp_lines();
    sftp_packets();
    dsync_frames();
    ssh();
    bridges();
    iscsi_pdus();
    iscsi_logins();
    scsi();
    rpcrdma();
}

fn rpcrdma() {
    use crate::rpcrdma::Header;
    let mut c = Corpus::of("rpcrdma_header");
    for seed in 0..24 {
        let mut bytes = Vec::new();
        arbitrary::<Header>(seed).encode(&mut Writer::new(&mut bytes));
        bytes.extend_from_slice(b"message!");
        c.add(&format!("header-{seed}"), &bytes);
    }
}

fn scsi() {
    use crate::scsi::Cdb;
    let mut c = Corpus::of("scsi_cdb");
    for seed in 0..80u64 {
        let mut entropy = vec![0; 64];
        SeededRandom::new(seed).fill(&mut entropy);
        let cdb: Cdb = Gen::new(&entropy).arb();
        c.add(&format!("cdb-{seed}"), cdb.encode().expect("a form").bytes());
    }
    let mut c = Corpus::of("scsi_data");
    for (i, (which, bytes)) in crate::scsi::params_tests::examples().iter().enumerate() {
        c.add(&format!("data-{which}-{i}"), &[&[*which][..], bytes].concat());
    }
}

fn iscsi_pdus() {
    use crate::iscsi::{Digests, Request, Response};
    let mut c = Corpus::of("iscsi_pdu");
    for seed in 0..48u64 {
        let mut entropy = vec![0; 400];
        SeededRandom::new(seed).fill(&mut entropy);
        let mut g = Gen::new(&entropy);
        let which = seed as u8 & 3;
        let digests = Digests { header: which & 1 != 0, data: which & 2 != 0 };
        let (request, response): (Request<'_>, Response<'_>) = (g.arb(), g.arb());
        let mut bytes = vec![which];
        request.put(&mut bytes, digests);
        response.put(&mut bytes, digests);
        c.add(&format!("pair-{seed}"), &bytes);
    }
}

/// Both sides of a whole login, without CHAP, with CHAP one way, and both ways.
fn iscsi_logins() {
    let mut c = Corpus::of("iscsi_login");
    for which in 0..6u8 {
        let (requests, responses) = super::iscsi::whole_login(which);
        c.add(&format!("requests-{which}"), &[&[which][..], &requests].concat());
        c.add(&format!("responses-{which}"), &[&[which | 0x80][..], &responses].concat());
    }
}

fn bridges() {
    use crate::bridge::{Answered, Greeted, Greeting, Sealer};
    let secret = super::bridge::SECRET;
    let mut c = Corpus::of("bridge");
    let mut sealer = Sealer::new(&secret, super::bridge::SESSION).expect("a sealer");
    for (i, length) in [0, 1, 62, 400].into_iter().enumerate() {
        let mut frame = Vec::new();
        sealer.seal(&vec![i as u8; length], &mut frame).expect("a frame");
        c.add(&format!("frame-{i}"), &frame);
    }
    let call = Greeted::call(&secret).expect("a call").greeting();
    c.add("call", &call);
    let call = Greeting::decode(&call).expect("a greeting");
    c.add("answer", &Answered::to(&secret, &call).expect("an answer").greeting);
}

fn args() {
    use nfs3::*;
    let mut c = Corpus::of("nfs3_args");
    c.message::<()>(0, "null");
    c.message::<GetattrArgs<'_>>(1, "getattr");
    c.message::<SetattrArgs<'_>>(2, "setattr");
    c.message::<LookupArgs<'_>>(3, "lookup");
    c.message::<AccessArgs<'_>>(4, "access");
    c.message::<ReadlinkArgs<'_>>(5, "readlink");
    c.message::<ReadArgs<'_>>(6, "read");
    c.message::<WriteArgs<'_>>(7, "write");
    c.message::<CreateArgs<'_>>(8, "create");
    c.message::<MkdirArgs<'_>>(9, "mkdir");
    c.message::<SymlinkArgs<'_>>(10, "symlink");
    c.message::<MknodArgs<'_>>(11, "mknod");
    c.message::<RemoveArgs<'_>>(12, "remove");
    c.message::<RmdirArgs<'_>>(13, "rmdir");
    c.message::<RenameArgs<'_>>(14, "rename");
    c.message::<LinkArgs<'_>>(15, "link");
    c.message::<ReaddirArgs<'_>>(16, "readdir");
    c.message::<ReaddirplusArgs<'_>>(17, "readdirplus");
    c.message::<FsstatArgs<'_>>(18, "fsstat");
    c.message::<FsinfoArgs<'_>>(19, "fsinfo");
    c.message::<PathconfArgs<'_>>(20, "pathconf");
    c.message::<CommitArgs<'_>>(21, "commit");
    assert_eq!(c.written as u64, 22 * SEEDS_EACH);
}

fn results() {
    use nfs3::*;
    let mut c = Corpus::of("nfs3_res");
    c.message::<()>(0, "null");
    c.message::<GetattrRes>(1, "getattr");
    c.message::<SetattrRes>(2, "setattr");
    c.message::<LookupRes<'_>>(3, "lookup");
    c.message::<AccessRes>(4, "access");
    c.message::<ReadlinkRes<'_>>(5, "readlink");
    c.message::<ReadRes<'_>>(6, "read");
    c.message::<WriteRes>(7, "write");
    c.message::<CreateRes<'_>>(8, "create");
    c.message::<MkdirRes<'_>>(9, "mkdir");
    c.message::<SymlinkRes<'_>>(10, "symlink");
    c.message::<MknodRes<'_>>(11, "mknod");
    c.message::<RemoveRes>(12, "remove");
    c.message::<RmdirRes>(13, "rmdir");
    c.message::<RenameRes>(14, "rename");
    c.message::<LinkRes>(15, "link");
    c.message::<ReaddirRes<'_>>(16, "readdir");
    c.message::<ReaddirplusRes<'_>>(17, "readdirplus");
    c.message::<FsstatRes>(18, "fsstat");
    c.message::<FsinfoRes>(19, "fsinfo");
    c.message::<PathconfRes>(20, "pathconf");
    c.message::<CommitRes>(21, "commit");
    assert_eq!(c.written as u64, 22 * SEEDS_EACH);
}

fn mount() {
    let mut c = Corpus::of("mount3");
    c.message::<mount3::MntArgs<'_>>(0, "mnt-args");
    c.message::<mount3::MntRes<'_>>(1, "mnt-res");
    c.message::<mount3::DumpRes<'_>>(2, "dump-res");
    c.message::<mount3::ExportRes<'_>>(3, "export-res");
    c.message::<portmap::Mapping>(4, "pmap-mapping");
    c.message::<portmap::DumpRes>(5, "pmap-dump-res");
    c.message::<portmap::Rpcb<'_>>(6, "rpcb");
    c.message::<portmap::RpcbDumpRes<'_>>(7, "rpcb-dump-res");
}

fn locks() {
    let mut c = Corpus::of("nlm4");
    c.message::<nlm4::TestArgs<'_>>(0, "test-args");
    c.message::<nlm4::TestRes<'_>>(1, "test-res");
    c.message::<nlm4::LockArgs<'_>>(2, "lock-args");
    c.message::<nlm4::CancelArgs<'_>>(3, "cancel-args");
    c.message::<nlm4::UnlockArgs<'_>>(4, "unlock-args");
    c.message::<nlm4::Nlm4Res<'_>>(5, "res");
    c.message::<nlm4::ShareArgs<'_>>(6, "share-args");
    c.message::<nlm4::ShareRes<'_>>(7, "share-res");
    c.message::<nlm4::NotifyArgs<'_>>(8, "free-all-args");
    c.message::<nsm::StatArgs<'_>>(9, "sm-stat-args");
    c.message::<nsm::SmStatRes>(10, "sm-stat-res");
    c.message::<nsm::MonArgs<'_>>(11, "sm-mon-args");
    c.message::<nsm::MonId<'_>>(12, "sm-unmon-args");
    c.message::<nsm::MyId<'_>>(13, "sm-unmon-all-args");
    c.message::<nsm::NotifyArgs<'_>>(14, "sm-notify-args");
}

/// One seed for each operation and callback with its result, and some attributes.
fn compounds() {
    use nfs4::*;
    let mut c = Corpus::of("nfs4_compound");
    for which in 0..74u8 {
        let mut entropy = vec![which];
        let mut more = vec![0; 400];
        SeededRandom::new(u64::from(which)).fill(&mut more);
        entropy.extend(more);
        let (tag, count) = (Tag4(b"seed"), 1);
        let args: ArgOp<'_> = Gen::new(&entropy).arb();
        let head = CompoundArgs { tag, minorversion: 2, count };
        c.pair(0, &format!("args-{which}"), &head, &args);
        let res: ResOp<'_> = Gen::new(&entropy).arb();
        let head = CompoundRes { status: res.status(), tag, count };
        c.pair(1, &format!("res-{which}"), &head, &res);
        if which >= 8 {
            continue;
        }
        let args: CbArgOp<'_> = Gen::new(&entropy).arb();
        let head = CbCompoundArgs { tag, minorversion: 1, callback_ident: 7, count };
        c.pair(2, &format!("cb-args-{which}"), &head, &args);
        let res: CbResOp<'_> = Gen::new(&entropy).arb();
        let head = CbCompoundRes { status: res.status(), tag, count };
        c.pair(3, &format!("cb-res-{which}"), &head, &res);
        c.pair(4, &format!("attrs-{which}"), &(), &Gen::new(&entropy).arb::<Attrs4<'_>>());
    }
}

fn headers() {
    let mut c = Corpus::of("rpc_call");
    for seed in 0..4 * SEEDS_EACH {
        let mut call = Vec::new();
        arbitrary::<CallHeader<'_>>(seed).encode(&mut Writer::new(&mut call));
        call.extend_from_slice(b"args");
        c.add(&format!("call-{seed}"), &call);
        let mut reply = Vec::new();
        arbitrary::<ReplyHeader<'_>>(seed).encode(&mut Writer::new(&mut reply));
        c.add(&format!("reply-{seed}"), &reply);
    }
    let mut reply = Vec::new();
    rpc::success(&mut Writer::new(&mut reply), 1);
    let body = ReplyBody::Accepted { verf: Auth::None, stat: Accepted::Success };
    assert_eq!(decode_all(&reply), Ok(ReplyHeader { xid: 1, body }));
    c.add("reply-success", &reply);
}

fn records() {
    let mut c = Corpus::of("rpc_record");
    let last = 1u32 << 31;
    let streams: [(&str, &[&[u32]]); 4] = [
        ("one", &[&[last | 4, 1]]),
        ("two", &[&[last | 8, 1, 2], &[last | 4, 3]]),
        ("fragments", &[&[4, 1], &[8, 2, 3], &[last | 4, 4]]),
        ("empty-fragments", &[&[0], &[0], &[4, 1], &[last]]),
    ];
    for (name, fragments) in streams {
        let words = fragments.concat();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        c.add(name, &bytes);
    }
}

fn ftp_lines() {
    let mut c = Corpus::of("ftp");
    let mut add = |which: u32, name: &str, text: &[u8]| {
        let mut bytes = which.to_be_bytes().to_vec();
        bytes.extend_from_slice(text);
        c.add(name, &bytes);
    };
    let session = b"USER ann\r\nPASS \r\nTYPE L 8\r\nEPSV\r\nREST 17\r\nRETR a b\r\n";
    add(0, "session", session);
    add(0, "ports", b"PORT 127,0,0,1,4,1\r\nEPRT |2|::1|1025|\r\nEPSV ALL\r\nepsv 2\n");
    add(0, "abort", b"STOR x\r\n\xff\xf4\xff\xf2ABOR\r\n");
    add(0, "telnet", b"RETR \xff\xff\xff\xfb\x01a\r\0b\r\n");
    let times = b"MFMT 20261121191200.5 a\r\nSITE UTIME b 20200101000000 20200101000001 \
                  20200101000002 UTC\r\n";
    add(0, "times", times);
    let site = b"SITE CHMOD 0644 a b\r\nSITE HELP\r\nOPTS MLST type;size;\r\nOPTS UTF8 ON\r\n\
                 OPTS HASH SHA-256\r\n";
    add(0, "site", site);
    add(
        0,
        "others",
        b"RANG 0 99\r\nHASH a\r\nPROT p\r\nPBSZ 0\r\nLIST -la x\r\nALLO 5 R 1\r\nNOOP\r\n",
    );
    add(1, "reply", b"227 Entering Passive Mode (127,0,0,1,4,1).\r\n");
    add(1, "features", b"211-Features:\r\n MLST type*;size;\r\n UTF8\r\n211 End\r\n");
    let entry = b"type=file;size=5;modify=20261121191200;perm=adfrw;unique=1ag2;\
                  UNIX.mode=0644;UNIX.owner=0;UNIX.group=0; a b";
    add(2, "entry", entry);
    add(2, "link", b"Type=OS.unix=slink:/x;Modify=19991231235959.999; l");
    add(3, "text", b"one\ntwo\r\nthree\rfour");
}

fn dsync_frames() {
    let mut c = Corpus::of("dsync");
    for seed in 0..80u64 {
        let mut entropy = vec![0; 300];
        SeededRandom::new(seed).fill(&mut entropy);
        let mut g = Gen::new(&entropy);
        let mut bytes = Vec::new();
        for _ in 0..2 {
            crate::dsync::frame::put(&g.arb(), &mut bytes);
        }
        c.add(&format!("pair-{seed}"), &bytes);
    }
}

fn sftp_packets() {
    use sftp::{PacketType, Reply, Request};
    let mut c = Corpus::of("sftp");
    for seed in 0..60u64 {
        let mut entropy = vec![0; 400];
        SeededRandom::new(seed).fill(&mut entropy);
        let mut g = Gen::new(&entropy);
        let (request, reply): (Request<'_>, Reply<'_>) = (g.arb(), g.arb());
        let mut bytes = Vec::new();
        let w = &mut Writer::new(&mut bytes);
        request.put(w, seed as u32);
        reply.put(w, seed as u32);
        c.add(&format!("pair-{seed}"), &bytes);
    }
    let mut bytes = Vec::new();
    let w = &mut Writer::new(&mut bytes);
    let begun = sftp::begin_packet(w, PacketType::VERSION);
    let known = sftp::Extended::KNOWN.iter();
    let extensions =
        known.map(|(name, v)| (sftp::Str(name.as_bytes()), sftp::Str(v.as_bytes()))).collect();
    sftp::packet::Hello { version: sftp::SFTP_VERSION, extensions }.encode(w);
    sftp::end_packet(w, begun, 0);
    c.add("version", &bytes);
}

fn ssh() {
    use crate::ssh::kex::{self, Method, Policy};
    use crate::ssh::message::{Message, put_ext_info, put_info_response};
    use crate::ssh::packet::Sealer;
    use crate::ssh::transport::{ClientSetup, ServerSetup, Side, Transport};
    use crate::ssh::{host_key::HostKey, tests};
    use std::sync::Arc;
    let mut c = Corpus::of("ssh_message");
    for (i, bytes) in tests::examples().iter().enumerate() {
        c.add(&format!("message-{i}"), bytes);
    }
    let mut bytes = Vec::new();
    put_ext_info(&mut bytes, &[("server-sig-algs", b"ssh-ed25519")]);
    c.add("ext-info", &bytes);
    bytes.clear();
    put_info_response(&mut bytes, &[b"secret"]);
    c.add("info-response", &bytes);
    let mut c = Corpus::of("ssh_key");
    for (i, bytes) in tests::example_keys().iter().enumerate() {
        c.add(&format!("key-{i}"), bytes);
    }
    let mut c = Corpus::of("ssh_transport");
    let key = Arc::new(HostKey::new_ed25519(&mut SeededRandom::new(1)).expect("a key"));
    for (which, seed) in [(0u8, 1), (0, 2), (200, 3), (1, 1), (1, 2), (201, 3)] {
        let (software, policy) = ("Seed".to_owned(), Policy::compatible());
        let side = if which & 1 == 0 {
            Side::Client(Arc::new(ClientSetup { software, policy, host_key: None }))
        } else {
            let host_keys = vec![Arc::clone(&key)];
            Side::Server(Arc::new(ServerSetup { software, policy, host_keys }))
        };
        let random = Box::new(SeededRandom::new(seed));
        let mut transport = Transport::new(side, random).expect("a transport");
        let mut bytes = vec![which];
        bytes.extend_from_slice(transport.output().expect("bytes"));
        if which & 1 == 0 && seed > 1 {
            // The first of the list is what both prefer.
            let share = kex::initiate(Method::Mlkem768X25519).expect("a share").share;
            let start = Sealer::begin(&mut bytes);
            Message::KexEcdhInit(&share).encode(&mut bytes);
            Sealer::plain().finish(&mut bytes, start).expect("a packet");
        }
        c.add(&format!("begin-{which}-{seed}"), &bytes);
    }
}
