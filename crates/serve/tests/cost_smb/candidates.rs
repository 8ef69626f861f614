//! What is tried: requests that a seed makes, alone or as a compound.

use base::limits::{SMB_COMPOUND_MAX, SMB_COPY_CHUNK_MAX, SMB_COPY_CHUNKS_MAX, SMB_LOCKS_MAX};
use base::random::{Random, SeededRandom};
use e2e::smb::{Ask, Offer, Smb, new_name};
use e2e::tcp::HERE;
use wire::smb::class::file_class;
use wire::smb::codec::Field;
use wire::smb::create::{Disposition, FileId, access, options};
use wire::smb::dir;
use wire::smb::header::Command;
use wire::smb::info::{QueryRequest, SetRequest, info_type};
use wire::smb::ioctl::{self, Chunk, code};
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::security::{Ace, Descriptor};
use wire::smb::sid::Sid;
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use crate::world::{BIG, DEEP, World};

/// A frame of requests, ready to be sent, and what it is in words.
pub struct Candidate {
    requests: Vec<Vec<u8>>,
    pub words: String,
}

/// Bytes that a request pays for, and its body.
type Part = (Command, usize, Box<dyn Fn(&mut Vec<u8>)>, String);

/// A connection, with files open on it.
pub struct Client {
    smb: Smb,
    many: FileId,
    long: FileId,
    links: FileId,
    file: FileId,
    big: FileId,
    holes: FileId,
}

fn pick<'a, T>(random: &mut SeededRandom, from: &'a [T]) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

impl Client {
    pub fn new(world: &World) -> Self {
        let alice = ("alice", "secret");
        let mut smb =
            Smb::open((HERE, world.at), &Offer::default(), alice, "share").expect("alice");
        // Credits for the largest requests.
        smb.earn_credits(20).expect("answers");
        let mut open = |ask: Ask<'_>| smb.create(&ask).expect("an answer").expect("a file");
        let dir = |path| Ask { access: access::READ, ..Ask::open(path) }.dir();
        let (many, long, links) = (open(dir("many")), open(dir("long")), open(dir("links")));
        let [file, big, holes] = ["file", "big", "holes"].map(|path| open(Ask::open(path)));
        let mut client = Self { smb, many, long, links, file, big, holes };
        let sparse = client.smb.control(code::SET_SPARSE, holes, &[], 0).expect("an answer");
        assert_eq!(sparse.status(), NtStatus::SUCCESS);
        client
    }

    /// What this seed makes.
    pub fn candidate(&mut self, world: &World, random: &mut SeededRandom) -> Candidate {
        if random.below(4) == 0 {
            world.touch();
        }
        let parts: Vec<Part> = match random.below(6) {
            // The same many times, which is what makes a compound expensive.
            0 => {
                let (seed, count) = (random.next_u64(), 2 + random.below(63) as usize);
                let count = count.min(SMB_COMPOUND_MAX);
                (0..count).map(|_| self.part(&mut SeededRandom::new(seed))).collect()
            }
            1 => (0..2 + random.below(30)).map(|_| self.part(random)).collect(),
            _ => vec![self.part(random)],
        };
        self.put(parts)
    }

    /// A search with this pattern.
    pub fn pattern(&mut self, pattern: &str) -> Candidate {
        let part = search((self.long, pattern.to_owned()), 0x10, 64 << 10);
        self.put(vec![part])
    }

    /// As many searches as a compound may have, each for entries of 1 MiB.
    pub fn large_searches(&mut self) -> Candidate {
        let one = |_| search((self.long, "b*".to_owned()), 0x10, 1 << 20);
        self.put((0..SMB_COMPOUND_MAX).map(one).collect())
    }

    fn put(&mut self, parts: Vec<Part>) -> Candidate {
        let (mut requests, mut words) = (Vec::new(), format!("{} requests:", parts.len()));
        for (command, size, body, text) in parts {
            requests.push(self.smb.request(command, size, &*body));
            words = words + " " + &text;
        }
        Candidate { requests, words }
    }

    /// Sends it; its answer is taken by [`Client::ask`].
    pub fn send(&mut self, candidate: &Candidate) {
        self.smb.send(&candidate.requests).expect("sent");
    }

    /// Sends it and waits for all of its answers.
    pub fn ask(&mut self, candidate: &Candidate) {
        self.send(candidate);
        let is_pending = |one: &e2e::smb::Answer| one.status() == NtStatus::PENDING;
        while self.smb.receive().expect("an answer").iter().any(is_pending) {}
    }

    fn part(&self, random: &mut SeededRandom) -> Part {
        match random.below(10) {
            0..3 => create(random),
            3..5 => self.search(random),
            5 => self.locks(random),
            6 => self.control(random),
            7 => self.security(random),
            8 => self.rename(random),
            _ => self.query(random),
        }
    }

    fn search(&self, random: &mut SeededRandom) -> Part {
        let file = *pick(random, &[self.many, self.long, self.links]);
        let pattern = match random.below(6) {
            0 => "*".to_owned(),
            1 => "f*".to_owned(),
            2 => pick(random, &["*a", "a*", "*?", "?*a"]).repeat(120) + "*b",
            3 => pick(random, &["<", "*<", "<*>", "a>", "\"*"]).repeat(100),
            4 => "?".repeat(1 + random.below(250) as usize),
            _ => {
                let unit = |_| *pick(random, &['*', '?', '<', '>', '"', 'a', 'f', '0', '1', '.']);
                (0..8 + (file.volatile as usize % 3) * 120).map(unit).collect()
            }
        };
        let pattern = pattern.chars().take(500).collect();
        let flags = *pick(random, &[0, 1, 2, 0x10, 0x11, 0x13]);
        search((file, pattern), flags, *pick(random, &[4 << 10, 64 << 10, 1 << 20]))
    }

    fn locks(&self, random: &mut SeededRandom) -> Part {
        let kind = *pick(random, &[lock_flags::SHARED, lock_flags::EXCLUSIVE]);
        let flags = kind | lock_flags::FAIL_IMMEDIATELY;
        let most = *pick(random, &[1 << 10, 1 << 30]);
        let begin = random.below(most);
        let step = *pick(random, &[0, 1, 2, 1_000]);
        let count = 1 + random.below(SMB_LOCKS_MAX as u64);
        let length = *pick(random, &[0, 1, 3, 1 << 40]);
        let one = |n: u64| Element { offset: begin + n * step, length, flags, reserved: 0 };
        let mut locks: Vec<_> = (0..count).map(one).collect();
        match random.below(4) {
            // What an array locks is unlocked by another one, in the order of its elements.
            0 => locks.iter_mut().for_each(|one| one.flags = lock_flags::UNLOCK),
            // The last one fails, and all before it are given back.
            1 => locks.extend(locks.first().copied().filter(|_| locks.len() < SMB_LOCKS_MAX)),
            _ => {}
        }
        let file = self.file;
        let put =
            move |out: &mut Vec<u8>| Lock { lock_sequence: 0, file, locks: locks.clone() }.put(out);
        (Command::LOCK, 0, Box::new(put), format!("LOCK {count} from {begin} by {step}"))
    }

    fn control(&self, random: &mut SeededRandom) -> Part {
        let mut input = Vec::new();
        let (file, code, output_max, words) = match random.below(5) {
            0..2 => {
                let count = *pick(random, &[1, 16, SMB_COPY_CHUNKS_MAX as u64]);
                let length = (BIG / count).min(SMB_COPY_CHUNK_MAX.into()) as u32;
                self.big.put(&mut input);
                input.resize(24, 0);
                (count as u32).put(&mut input);
                0u32.put(&mut input);
                for n in 0..count {
                    let source = n * u64::from(length) % (BIG - u64::from(length) + 1);
                    Chunk { source, target: source, length, reserved: 0 }.put(&mut input);
                }
                (self.file, code::COPYCHUNK_WRITE, 12, format!("{count} chunks of {length}"))
            }
            2..4 => {
                0u64.put(&mut input);
                (i64::MAX as u64).put(&mut input);
                let output_max = *pick(random, &[16, 4 << 10, 1 << 20]);
                (self.holes, code::QUERY_ALLOCATED_RANGES, output_max, "ranges".to_owned())
            }
            _ => {
                let begin = random.below(BIG);
                begin.put(&mut input);
                (begin + random.below(BIG)).put(&mut input);
                (self.big, code::SET_ZERO_DATA, 0, "zeros".to_owned())
            }
        };
        let flags = ioctl::IS_FSCTL;
        let put = move |out: &mut Vec<u8>| {
            ioctl::Request { code, file, output_max, flags, input: &input }.put(out);
        };
        (Command::IOCTL, output_max as usize, Box::new(put), format!("IOCTL {words}"))
    }

    fn security(&self, random: &mut SeededRandom) -> Part {
        let file = *pick(random, &[self.file, self.many, self.holes]);
        let count = *pick(random, &[1, 100, 900]);
        let sid = |random: &mut SeededRandom| match random.below(3) {
            0 => Sid::world(),
            1 => Sid::user(random.below(100_000) as u32),
            _ => Sid::group(random.below(100_000) as u32),
        };
        let ace = |random: &mut SeededRandom| {
            let (kind, mask) = (random.below(2) as u8, random.next_u64() as u32 & 0x1f_01ff);
            Ace { kind, flags: 0, mask, sid: sid(random) }
        };
        let dacl: Vec<_> = (0..count).map(|_| ace(random)).collect();
        let mut data = Vec::new();
        Descriptor { owner: None, group: None, dacl: Some(dacl) }.put(&mut data);
        let put = move |out: &mut Vec<u8>| {
            let (info_type, class, additional) = (info_type::SECURITY, 0, 4);
            SetRequest { info_type, class, additional, file, data: &data }.put(out);
        };
        (Command::SET_INFO, 64 << 10, Box::new(put), format!("security of {count} entries"))
    }

    fn rename(&self, random: &mut SeededRandom) -> Part {
        let file = *pick(random, &[self.many, self.links, self.file]);
        let class = *pick(random, &[file_class::RENAME, file_class::LINK]);
        // Names that are there, so that all files stay where they are.
        let number = random.below(600);
        let path = match random.below(3) {
            0 => format!("MANY\\F{number:07}"),
            1 => format!("LINKS\\L{number:04}"),
            _ => format!("links\\c{}", number % 4),
        };
        let data = new_name(&path, false);
        let put = move |out: &mut Vec<u8>| {
            let (info_type, additional) = (info_type::FILE, 0);
            SetRequest { info_type, class, additional, file, data: &data }.put(out);
        };
        (Command::SET_INFO, 0, Box::new(put), format!("name {class} {path:.60}"))
    }

    fn query(&self, random: &mut SeededRandom) -> Part {
        let file = *pick(random, &[self.file, self.many, self.holes]);
        let info_type =
            *pick(random, &[info_type::FILE, info_type::FILE_SYSTEM, info_type::SECURITY]);
        let (class, additional) = (random.below(64) as u8, 7);
        let put = move |out: &mut Vec<u8>| {
            let (output_max, flags, input) = (64 << 10, 0, &[][..]);
            QueryRequest { info_type, class, output_max, additional, flags, file, input }.put(out);
        };
        let words = format!("QUERY_INFO {info_type} {class}");
        (Command::QUERY_INFO, 64 << 10, Box::new(put), words)
    }
}

fn search((file, pattern): (FileId, String), flags: u8, output_max: u32) -> Part {
    let words = format!("QUERY_DIRECTORY {pattern:.40} ({}) {flags:x}", pattern.len());
    let level = dir::Level::IdBoth as u8;
    let pattern = utf16::encode(&pattern);
    let put = move |out: &mut Vec<u8>| {
        dir::Request { level, flags, file, pattern: &pattern, output_max }.put(out);
    };
    (Command::QUERY_DIRECTORY, output_max as usize, Box::new(put), words)
}

/// A path with an expensive look-up, in a random case.
fn path(random: &mut SeededRandom) -> String {
    let number = random.below(20_000);
    let path = match random.below(9) {
        0 => format!("MANY\\F{number:07}"),
        1 => format!("many\\missing{number}"),
        2 => format!("links\\l{:04}", number % 600),
        3 => format!("LINKS\\C{}", number % 4),
        4 => "links\\loop".to_owned(),
        5 => format!("deep{}\\none", "\\d".repeat(random.below(DEEP as u64) as usize)),
        6 => format!("long\\{}{:07}", "A".repeat(240), number % 5_000),
        7 => format!("links\\c{}\\x", number % 4),
        _ => "many\\a\\..".to_owned() + &"\\x".repeat(random.below(200) as usize),
    };
    if random.below(2) == 0 { path.to_uppercase() } else { path }
}

fn create(random: &mut SeededRandom) -> Part {
    let path = path(random);
    let disposition = *pick(random, &[Disposition::Open, Disposition::OpenIf]);
    let options = *pick(random, &[0, 0, options::DIRECTORY, options::NON_DIRECTORY]);
    let words = format!("CREATE {path:.60}");
    let put = move |out: &mut Vec<u8>| {
        let ask = Ask { access: access::READ, disposition, ..Ask::open(&path) };
        ask.with(options).put(out);
    };
    (Command::CREATE, 0, Box::new(put), words)
}
