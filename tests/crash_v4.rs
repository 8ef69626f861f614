//! What only NFSv4.2 does to files is on disk when it is acknowledged: the power goes right after
//! the answer, on a disk that loses what was not flushed. Leaving out any one of these flushes
//! must be noticed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use e2e::disk::Disk;
use e2e::nfs4::files::Opened;
use e2e::nfs4::{Client, Outcome};
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use e2e::skip;
use wire::nfs4::{Nfsace4, Utf8str, acemask4, acetype4, attr4};

/// The kind of file system that can do all of it: it shares blocks, keeps lists, and its journal
/// is written when somebody asks for it, or half a minute later.
const KIND: &str = "xfs";
/// Times that each is tried: once to see it kept.
const TRIES: u64 = 3;
/// Bytes of the files.
const SIZE: u64 = 64 << 10;
/// Whom the client acts for.
const USER: (u32, u32) = (1000, 1000);

/// What is done last before the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Allocate,
    Deallocate,
    Copy,
    Clone,
    Setxattr,
    Removexattr,
    Acl,
}

impl Last {
    const ALL: [Self; 7] = [
        Self::Allocate,
        Self::Deallocate,
        Self::Copy,
        Self::Clone,
        Self::Setxattr,
        Self::Removexattr,
        Self::Acl,
    ];

    /// The flush that it needs, by the name that `PLIMSOLL_TEST_SKIP_FLUSH` takes.
    fn flush(self) -> &'static str {
        match self {
            Self::Allocate => "allocate",
            Self::Deallocate => "deallocate",
            Self::Copy => "copy",
            Self::Clone => "clone",
            Self::Setxattr | Self::Removexattr => "xattr",
            Self::Acl => "acl",
        }
    }
}

/// The server on such a disk; its state lies on another that forgets nothing.
struct World {
    server: Option<Server>,
    disk: Disk,
    scratch: Scratch,
    skip_flush: Option<&'static str>,
    round: u64,
}

impl World {
    fn new(skip_flush: Option<&'static str>) -> Result<Self, String> {
        let disk = Disk::new(KIND)?;
        make_folder(&disk.path().join("share"), Some(USER.0));
        Ok(Self { server: None, disk, scratch: Scratch::new("crash-v4"), skip_flush, round: 0 })
    }

    fn share(&self) -> PathBuf {
        self.disk.path().join("share")
    }

    fn start(&mut self) -> Client {
        let (share, state) = (self.share(), self.scratch.folder("state", None));
        let mut options = Options::new(&share, &state);
        if let Some(site) = self.skip_flush {
            options.env.push(("PLIMSOLL_TEST_SKIP_FLUSH", site.to_owned()));
        }
        let server = Server::start(&options);
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, server.nfs_port()).into();
        self.server = Some(server);
        self.round += 1;
        let mut client = Client::connect(address, USER, "crash", self.round).expect("a session");
        // It alone is on record from before: with this the grace period is over.
        client.reclaim_complete().expect("RECLAIM_COMPLETE");
        client
    }

    fn crash(&mut self) {
        drop(self.server.take());
        self.disk.crash();
    }

    /// One attempt: what was found instead of what was acknowledged, if anything.
    fn attempt(&mut self, last: Last, number: u64) -> Option<String> {
        let mut client = self.start();
        let root = client.walk("/export/share").expect("the share");
        let names = (format!("source{number}"), format!("target{number}"));
        let open = |client: &mut Client, name: &str, create| {
            client.open(&root, name, "owner", create).unwrap_or_else(|e| panic!("{name}: {e:?}"))
        };
        let source = open(&mut client, &names.0, true);
        let target = open(&mut client, &names.1, true);
        prepare(&mut client, &source, &target).expect("what is there before");
        act(last, &mut client, &source, &target).unwrap_or_else(|e| panic!("{last:?}: {e:?}"));
        self.crash();
        let mut client = self.start();
        let target = open(&mut client, &names.1, false);
        let found = look(last, &mut client, &target).expect("a look at it");
        let acknowledged = expected(last);
        drop(self.server.take());
        (found != acknowledged).then(|| format!("{found}, acknowledged was {acknowledged}"))
    }
}

fn bytes(of: u8) -> Vec<u8> {
    vec![of; SIZE as usize]
}

fn prepare(client: &mut Client, source: &Opened, target: &Opened) -> Outcome<()> {
    client.write(source, 0, &bytes(b's'))?;
    client.setxattr(&target.handle, "old", b"was here")?;
    client.write(target, 0, &bytes(b't'))
}

fn act(last: Last, client: &mut Client, source: &Opened, target: &Opened) -> Outcome<()> {
    match last {
        Last::Allocate => client.allocate(target, 0, 2 * SIZE),
        Last::Deallocate => client.deallocate(target, 0, SIZE),
        Last::Copy => client.copy(source, target, SIZE).map(|copied| assert_eq!(copied, SIZE)),
        Last::Clone => client.clone_file(source, target),
        Last::Setxattr => client.setxattr(&target.handle, "new", b"value"),
        Last::Removexattr => client.removexattr(&target.handle, "old"),
        Last::Acl => client.set_acl(&target.handle, list()),
    }
}

/// A list that mode bits cannot say: one more user may read.
fn list() -> Vec<Nfsace4<'static>> {
    let read = acemask4::READ_DATA | acemask4::READ_ATTRIBUTES | acemask4::READ_ACL;
    let write = acemask4::WRITE_DATA | acemask4::APPEND_DATA;
    let entry = |who: &'static str, access_mask| Nfsace4 {
        kind: acetype4::ALLOWED,
        flag: 0,
        access_mask,
        who: Utf8str(who.as_bytes()),
    };
    vec![entry("OWNER@", read | write), entry("1234", read), entry("GROUP@", read)]
}

fn look(last: Last, client: &mut Client, target: &Opened) -> Outcome<String> {
    Ok(match last {
        Last::Allocate => {
            let size = client.getattr(&target.handle, &[attr4::SIZE], |a| a.size)?;
            format!("{} bytes", size.unwrap_or_default())
        }
        Last::Deallocate | Last::Copy | Last::Clone => {
            let data = client.read(target, 0, SIZE as u32)?;
            let same = data.first().filter(|first| data.iter().all(|b| b == *first));
            format!("{} bytes of {same:?}", data.len())
        }
        Last::Setxattr => format!("{:?}", client.getxattr(&target.handle, "new")?),
        Last::Removexattr => format!("{:?}", client.getxattr(&target.handle, "old")?),
        Last::Acl => {
            let other = client.acl(&target.handle)?;
            format!("1234 is named: {}", other.iter().any(|who| who == "1234"))
        }
    })
}

fn expected(last: Last) -> String {
    match last {
        Last::Allocate => format!("{} bytes", 2 * SIZE),
        Last::Deallocate => format!("{SIZE} bytes of Some(0)"),
        Last::Copy | Last::Clone => format!("{SIZE} bytes of {:?}", Some(b's')),
        Last::Setxattr => format!("{:?}", Some(b"value")),
        Last::Removexattr => "None".to_owned(),
        Last::Acl => "1234 is named: true".to_owned(),
    }
}

#[test]
fn what_4_2_does_is_on_disk_when_acknowledged() {
    let mut world = match World::new(None) {
        Ok(world) => world,
        Err(why) => skip!("crash-v4", "{why}"),
    };
    for last in Last::ALL {
        for number in 0..TRIES {
            let name = last as u64 * TRIES + number;
            if let Some(lost) = world.attempt(last, name) {
                panic!("{last:?}: {lost}");
            }
        }
    }
    println!("crash-v4: {} crashes, nothing lost", world.round / 2);
}

#[test]
fn leaving_out_any_one_flush_of_4_2_is_noticed() {
    for last in Last::ALL {
        let site = last.flush();
        let mut world = match World::new(Some(site)) {
            Ok(world) => world,
            Err(why) => skip!("crash-v4-each-flush", "{why}"),
        };
        let noticed = (0..TRIES).find_map(|number| world.attempt(last, number));
        match noticed {
            Some(what) => println!("without {site}: {last:?} was lost: {what}"),
            None => panic!("nobody noticed that the flush {site} of {last:?} was left out"),
        }
    }
}
