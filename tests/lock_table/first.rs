//! The first client: what it holds, and how it answers what it is called for.

use std::time::Duration;

use e2e::http::{Http, field};
use e2e::nfs4::back::Called;
use e2e::smb::Ask;
use e2e::smb::scene::{PASSWORD, SHARE, Scene, USER};
use e2e::tcp::HERE;
use wire::nfs4::share4;
use wire::smb::create::FileId;
use wire::smb::lease::state;

use crate::lock_table::nfs4::{Nfs4, OpenFile};
use crate::lock_table::old_nfs::{self, OldNfs};
use crate::lock_table::second::Second;
use crate::lock_table::smb::SmbClient;
use crate::lock_table::{FILE, OTHER, Progress};

/// How long the first waits for a call at a time.
const MOMENT: Duration = Duration::from_millis(2);
/// Files that are tried until one can be delegated: the slot of one may remember the recall of
/// another.
const FILES_MAX: usize = 100;

const R: u32 = state::READ;
const RH: u32 = state::READ | state::HANDLE;
const RW: u32 = state::READ | state::WRITE;
const RWH: u32 = RH | RW;

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    Deny,
    Bytes,
    Lease(u32),
    ReadDelegation,
    WriteDelegation,
    /// The name that is used is marked for deletion.
    Marked,
    /// The other name of the file is.
    OtherMarked,
}

/// Which client holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Nlm,
    Nfs40,
    Nfs41,
    Smb,
    Dav,
}

impl First {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Nlm => "NLM",
            Self::Nfs40 => "NFSv4.0",
            Self::Nfs41 => "NFSv4.1",
            Self::Smb => "SMB",
            Self::Dav => "WebDAV",
        }
    }
}

impl Lock {
    pub const ALL: [Self; 10] = [
        Self::Deny,
        Self::Bytes,
        Self::Lease(R),
        Self::Lease(RH),
        Self::Lease(RW),
        Self::Lease(RWH),
        Self::ReadDelegation,
        Self::WriteDelegation,
        Self::Marked,
        Self::OtherMarked,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Deny => {
                "An open that denies reading and writing, over SMB also deleting; an exclusive \
                 lock of WebDAV"
            }
            Self::Bytes => "An exclusive byte-range lock of the whole file",
            Self::Lease(R) => "An R lease",
            Self::Lease(RH) => "An RH lease",
            Self::Lease(RW) => "An RW lease",
            Self::Lease(_) => "An RWH lease",
            Self::ReadDelegation => "A read delegation",
            Self::WriteDelegation => "A write delegation",
            Self::Marked => "Of two links, the one that is used is marked for deletion",
            Self::OtherMarked => "Of two links, the other one is marked for deletion",
        }
    }

    /// The clients that can hold it.
    pub const fn holders(self) -> &'static [First] {
        match self {
            Self::Deny => &[First::Nlm, First::Nfs40, First::Nfs41, First::Smb, First::Dav],
            Self::Bytes => &[First::Nlm, First::Nfs40, First::Nfs41, First::Smb],
            Self::ReadDelegation => &[First::Nfs40, First::Nfs41],
            Self::WriteDelegation => &[First::Nfs41],
            Self::Lease(_) | Self::Marked | Self::OtherMarked => &[First::Smb],
        }
    }

    /// The name that the second uses.
    pub const fn name(self) -> &'static str {
        if matches!(self, Self::OtherMarked) { OTHER } else { FILE }
    }

    pub const fn has_links(self) -> bool {
        matches!(self, Self::Marked | Self::OtherMarked)
    }
}

/// One holder of each protocol; those of NFSv4 that can be called get delegations only.
pub(super) struct Holders {
    nlm: OldNfs,
    quiet: [Nfs4; 2],
    called: [Nfs4; 2],
    smb: SmbClient,
    http: Http,
}

impl Holders {
    pub fn new(scene: &Scene) -> Self {
        let (server, who) = (scene.server.nfs(), (USER, PASSWORD));
        Self {
            nlm: OldNfs::new(server, "first"),
            quiet: [0, 1].map(|minor| Nfs4::new(server, minor, &format!("first{minor}"))),
            called: [0, 1].map(|minor| Nfs4::called(server, minor, &format!("holder{minor}"))),
            smb: SmbClient::new(scene, 1),
            http: Http::connect(HERE, scene.server.at(80), who).expect("HTTP"),
        }
    }

    fn dav(&mut self, method: &str, fields: &str, body: &str) -> (u16, String) {
        let target = format!("/{SHARE}/{FILE}");
        let asked = (method, target.as_bytes());
        let answer = self.http.ask(asked, fields.as_bytes(), body.as_bytes());
        let (status, head, _) = answer.expect("a response");
        (status, head)
    }

    /// Has a client hold something on the file that `plant` makes.
    pub fn take(&mut self, first: First, lock: Lock, plant: impl Fn()) -> Holding {
        plant();
        let version = usize::from(first == First::Nfs41);
        match (lock, first) {
            (Lock::Deny, First::Nlm) => {
                let file = self.nlm.find(FILE).expect("the file");
                self.nlm.share(old_nfs::SHARE, &file, old_nfs::DENY_BOTH).expect("SHARE");
                Holding::Nlm(file)
            }
            (_, First::Nlm) => {
                let file = self.nlm.find(FILE).expect("the file");
                self.nlm.lock(&file).expect("LOCK");
                Holding::Nlm(file)
            }
            (Lock::Deny, First::Dav) => {
                let body = "<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:exclusive/></D:lockscope>\
                            <D:locktype><D:write/></D:locktype></D:lockinfo>";
                let (status, head) = self.dav("LOCK", "depth: 0\r\n", body);
                assert_eq!(status, 200, "LOCK: {head}");
                Holding::Dav(field(&head, "lock-token").expect("a token").to_owned())
            }
            (_, First::Dav) => unreachable!("WebDAV has no {lock:?}"),
            (_, First::Smb) => self.take_over_smb(lock),
            (Lock::ReadDelegation | Lock::WriteDelegation, _) => {
                self.take_delegation(version, lock, plant)
            }
            (Lock::Deny, _) => {
                let client = &mut self.quiet[version];
                let open = client.open(FILE, share4::ACCESS_BOTH, share4::DENY_BOTH);
                Holding::Open(version, open.expect("an open"))
            }
            _ => {
                let client = &mut self.quiet[version];
                let open = client.open(FILE, share4::ACCESS_BOTH, share4::DENY_NONE);
                let open = open.expect("an open");
                client.lock(&open).expect("LOCK");
                Holding::Open(version, open)
            }
        }
    }

    fn take_over_smb(&mut self, lock: Lock) -> Holding {
        let smb = &mut self.smb;
        match lock {
            Lock::Deny => Holding::Smb(smb.open(&Ask { share: 0, ..Ask::open(FILE) })),
            Lock::Lease(wanted) => {
                Holding::Lease { file: smb.open_with_lease(FILE, wanted), sent: Vec::new() }
            }
            Lock::Bytes => {
                let file = smb.open(&Ask::open(FILE));
                smb.lock(file, &Progress::default()).expect("LOCK");
                Holding::Smb(file)
            }
            _ => {
                let file = smb.open(&Ask::open(FILE));
                smb.mark(file);
                Holding::Smb(file)
            }
        }
    }

    fn take_delegation(&mut self, version: usize, lock: Lock, plant: impl Fn()) -> Holding {
        let access = match lock {
            Lock::ReadDelegation => share4::ACCESS_READ,
            _ => share4::ACCESS_BOTH,
        };
        let client = &mut self.called[version];
        for _ in 0..FILES_MAX {
            let open = client.open(FILE, access, share4::DENY_NONE).expect("an open");
            if open.delegation.is_some() {
                return Holding::Delegation { version, open, is_returned: false, sent: Vec::new() };
            }
            client.close(&open);
            plant();
        }
        panic!("no file was delegated: {lock:?}")
    }
}

/// What the first holds.
pub(super) enum Holding {
    Nlm(Vec<u8>),
    Open(usize, OpenFile),
    Delegation { version: usize, open: OpenFile, is_returned: bool, sent: Vec<String> },
    Smb(FileId),
    Lease { file: FileId, sent: Vec<String> },
    Dav(String),
}

/// The letters of a lease.
fn letters(caching: u32) -> String {
    let all = [(state::READ, 'R'), (state::WRITE, 'W'), (state::HANDLE, 'H')];
    let letters: String =
        all.iter().filter(|(bit, _)| caching & bit != 0).map(|one| one.1).collect();
    if letters.is_empty() { "none".to_owned() } else { letters }
}

fn note(sent: &mut Vec<String>, what: String) {
    if !sent.contains(&what) {
        sent.push(what);
    }
}

impl Holding {
    /// Whether its holder can be called because of it.
    pub const fn is_called(&self) -> bool {
        matches!(self, Self::Delegation { .. } | Self::Lease { .. })
    }

    /// Answers the next call, if there is one.
    pub fn answer(&mut self, holders: &mut Holders, progress: &Progress, second: Second) {
        match self {
            Self::Delegation { version, open, is_returned, sent } => {
                let client = &mut holders.called[*version];
                match client.next_call(MOMENT, open.known) {
                    Some(Called::Recall(_)) => {
                        note(sent, "CB_RECALL".to_owned());
                        progress.wait_for_delay(second);
                        if !std::mem::replace(is_returned, true) {
                            client.give_back(open);
                        }
                    }
                    Some(Called::Getattr) => note(sent, "CB_GETATTR".to_owned()),
                    Some(Called::Null) | None => {}
                }
            }
            Self::Lease { sent, .. } => {
                if let Some(broken) = holders.smb.next_break(MOMENT) {
                    progress.wait_for_delay(second);
                    note(sent, format!("{} to {}", letters(broken.from), letters(broken.to)));
                    holders.smb.acknowledge(&broken);
                }
            }
            _ => {}
        }
    }

    /// Ends it; gives what its holder was sent.
    pub fn release(self, holders: &mut Holders) -> Vec<String> {
        match self {
            Self::Nlm(file) => {
                holders.nlm.unlock(&file);
                holders.nlm.unshare(&file);
                Vec::new()
            }
            Self::Open(version, open) => {
                holders.quiet[version].close(&open);
                Vec::new()
            }
            Self::Delegation { version, open, is_returned, sent } => {
                let client = &mut holders.called[version];
                if !is_returned {
                    client.give_back(&open);
                }
                client.close(&open);
                sent
            }
            Self::Smb(file) => {
                holders.smb.close(file);
                Vec::new()
            }
            Self::Lease { file, mut sent } => {
                holders.smb.catch_up();
                while let Some(broken) = holders.smb.noticed() {
                    note(&mut sent, format!("{} to {}", letters(broken.from), letters(broken.to)));
                    holders.smb.acknowledge(&broken);
                    holders.smb.catch_up();
                }
                holders.smb.close(file);
                sent
            }
            Self::Dav(token) => {
                // It has ended with a file that was removed.
                holders.dav("UNLOCK", &format!("lock-token: {token}\r\n"), "");
                Vec::new()
            }
        }
    }
}
