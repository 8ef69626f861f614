//! What leaves the TCP stack: how large the segments are that it hands to the adapters, which
//! context drains them, and duplicate acknowledgements. Programs that run in the kernel count;
//! where they may not, the mean comes from the counters of IP ([`fallback`]).
//!
//! - `asm`: instructions; `btf`: the kernel's types; `bpf`: the system call.
//! - `programs`: what runs; here: loading it and reading its counts.
//! - [`sampler`]: all of it as statistics.

mod asm;
mod bpf;
mod btf;
pub mod fallback;
mod programs;
pub mod sampler;

use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt::{self, Display};
use std::io;
use std::net::Ipv6Addr;

use crate::Root;
use bpf::{Map, MapKind, Refused, Running};
use btf::Btf;
pub use btf::BtfError;
use programs::{CLIENT_KEY, Fields, Maps, SEGMENT_KEY, SEGMENT_VALUE};
use thiserror::Error;

/// Where the kernel describes its types.
pub const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Where the namespace of this process is named: `net:[4026531833]`.
const NAMESPACE: &str = "proc/self/ns/net";
/// Counts by interface, context and size: an interface that carries everything has some 150.
pub const SEGMENT_COUNTS_MAX: u32 = 4096;
/// Clients with duplicate acknowledgements.
pub const DUPLICATE_CLIENTS_MAX: u32 = 1024;
/// The part of a map that may be in use before it is cleared of what is old.
const FULL_PART: f64 = 0.75;

/// What hands a segment to the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// The thread that sends, or one that receives from its backlog.
    Sender,
    /// An acknowledgement arrived (soft interrupt `NET_RX`).
    Acknowledgement,
    /// The limit of bytes in queues below TCP was left (small queues; tasklet).
    SmallQueue,
    /// The timer that spreads segments over time.
    Pacing,
    /// Retransmission and probe timers.
    Retransmission,
    /// A queueing discipline that held it (soft interrupt `NET_TX`).
    Queue,
    /// Another soft interrupt.
    Other,
}

impl Context {
    /// All, in the order above.
    pub const ALL: [Self; 7] = [
        Self::Sender,
        Self::Acknowledgement,
        Self::SmallQueue,
        Self::Pacing,
        Self::Retransmission,
        Self::Queue,
        Self::Other,
    ];

    /// As statistics name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Acknowledgement => "ack",
            Self::SmallQueue => "small-queue",
            Self::Pacing => "pacing-timer",
            Self::Retransmission => "retransmission-timer",
            Self::Queue => "queueing-discipline",
            Self::Other => "other",
        }
    }

    /// By the number of the soft interrupt (linux/interrupt.h) plus 1.
    const fn of(vector: u8) -> Self {
        match vector {
            0 => Self::Sender,
            2 => Self::Retransmission,
            3 => Self::Queue,
            4 => Self::Acknowledgement,
            // HI and TASKLET: bottom halves run in either.
            1 | 7 => Self::SmallQueue,
            9 => Self::Pacing,
            _ => Self::Other,
        }
    }
}

/// Segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub segments: u64,
    /// Bytes of payload in them.
    pub bytes: u64,
    /// Sum of the squares of these: with it the mean by bytes is exact. It wraps.
    pub squares: u64,
}

impl Count {
    /// What came since `before`.
    pub const fn since(self, before: Self) -> Self {
        Self {
            segments: self.segments.wrapping_sub(before.segments),
            bytes: self.bytes.wrapping_sub(before.bytes),
            squares: self.squares.wrapping_sub(before.squares),
        }
    }

    /// With more.
    pub const fn plus(self, more: Self) -> Self {
        Self {
            segments: self.segments.wrapping_add(more.segments),
            bytes: self.bytes.wrapping_add(more.bytes),
            squares: self.squares.wrapping_add(more.squares),
        }
    }

    /// Bytes of a segment, each segment counted once; `None` without one.
    pub fn mean(self) -> Option<f64> {
        (self.segments > 0).then(|| self.bytes as f64 / self.segments as f64)
    }

    /// Bytes of the segment that a byte is in, each byte counted once.
    pub fn mean_by_bytes(self) -> Option<f64> {
        (self.bytes > 0).then(|| self.squares as f64 / self.bytes as f64)
    }
}

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The interface, by its index.
    pub interface: u32,
    /// What drained it.
    pub context: Context,
    /// The bucket of the size ([`base::buckets`]).
    pub bucket: u8,
}

/// Why programs do not run.
#[derive(Debug, Error)]
pub enum Unavailable {
    /// The rights are missing.
    #[error("the rights CAP_BPF and CAP_PERFMON are missing")]
    Rights,
    /// The kernel does not describe its types, or hides them.
    #[error("type information of the kernel ({TYPES}) cannot be read: {0}")]
    Hidden(io::Error),
    /// The description is damaged, or lacks what programs read.
    #[error("type information of the kernel cannot be used: {0}")]
    Types(#[from] BtfError),
    /// No namespace is named.
    #[error("the network namespace of this process is unknown")]
    Namespace,
    /// A map was refused.
    #[error("the kernel has no memory for the counts: {0}")]
    Memory(io::Error),
    /// The kernel refused a program.
    #[error("the kernel refused the program {program}: {reason}")]
    Refused {
        /// Its name.
        program: &'static str,
        /// The output of the verifier, or the error.
        reason: String,
    },
}

/// From what the statistics come.
#[derive(Debug)]
pub enum Tier {
    /// Programs in the kernel.
    Programs,
    /// The counters of IP.
    Counters(Unavailable),
}

impl Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Programs => f.write_str("programs in the kernel count each segment"),
            Self::Counters(why) => write!(f, "mean size only, from the counters of IP: {why}"),
        }
    }
}

/// The programs, as they run; they end with it.
#[derive(Debug)]
pub struct Observer {
    segments: Map,
    duplicates: Map,
    lost: Map,
    _vector: Map,
    running: Vec<Running>,
}

impl Observer {
    /// Loads the programs for the network namespace of this process.
    ///
    /// # Errors
    /// Why it cannot: [`Unavailable`].
    pub fn start(root: &Root) -> Result<Self, Unavailable> {
        Self::load(root, true)
    }

    /// Loads only those that count segments: what is received costs nothing then.
    ///
    /// # Errors
    /// Why it cannot: [`Unavailable`].
    pub fn start_sent(root: &Root) -> Result<Self, Unavailable> {
        Self::load(root, false)
    }

    fn load(root: &Root, with_duplicates: bool) -> Result<Self, Unavailable> {
        let namespace = namespace(root).ok_or(Unavailable::Namespace)?;
        let [vector, segments, duplicates, lost] = maps()?;
        let types = types(root)?;
        let fields = Fields::find(&types)?;
        let maps = Maps {
            vector: vector.descriptor(),
            segments: segments.descriptor(),
            duplicates: duplicates.descriptor(),
            lost: lost.descriptor(),
        };
        let mut all: Vec<(&'static CStr, &str, Vec<[u8; 8]>)> = vec![
            (c"plims_soft_in", "softirq_entry", programs::vector(maps, true)),
            (c"plims_soft_out", "softirq_exit", programs::vector(maps, false)),
            (c"plims_segment", "net_dev_start_xmit", programs::segment(&fields, maps, namespace)),
        ];
        if with_duplicates {
            let code = programs::duplicate(&fields, maps, namespace);
            all.push((c"plims_dup_ack", "tcp_probe", code));
        }
        let mut running = Vec::new();
        for (name, tracepoint, code) in all {
            let id = programs::tracepoint(&types, tracepoint)?;
            let one = Running::start(name, &code, id).map_err(|why| refused(name, why))?;
            running.push(one);
        }
        Ok(Self { segments, duplicates, lost, _vector: vector, running })
    }

    /// All counts since the start.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn counts(&self) -> io::Result<HashMap<Key, Count>> {
        let mut all = HashMap::new();
        self.segments.each(|key, values| add(&mut all, key, values))?;
        Ok(all)
    }

    /// Duplicate acknowledgements since the start, by client.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn duplicates(&self) -> io::Result<Vec<(Ipv6Addr, u64)>> {
        let mut all = Vec::new();
        self.duplicates.each(|key, value| {
            let address = key.first_chunk().copied().unwrap_or([0; CLIENT_KEY]);
            all.push((Ipv6Addr::from(address), u64_at(value, 0)));
        })?;
        Ok(all)
    }

    /// Segments and duplicate acknowledgements that found no room.
    pub fn lost(&self) -> [u64; 2] {
        [0u32, 1].map(|n| self.lost.get(&n.to_ne_bytes()).map_or(0, |value| u64_at(&value, 0)))
    }

    /// Takes the counts of interfaces out that `keep` does not hold, when there is little room.
    /// Whether any were taken.
    pub fn make_room(&self, counts: &[(Key, Count)], keep: impl Fn(u32) -> bool) -> bool {
        if (counts.len() as f64) < FULL_PART * f64::from(SEGMENT_COUNTS_MAX) {
            return false;
        }
        let mut gone = Vec::new();
        let each = self.segments.each(|key, _| {
            let n = key.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
            if !keep((n >> 32) as u32) {
                gone.push(n);
            }
        });
        gone.iter().for_each(|n| self.segments.delete(&n.to_ne_bytes()));
        each.is_ok() && !gone.is_empty()
    }

    /// Forgets clients with duplicate acknowledgements when there is little room for others.
    pub fn forget_clients(&self, known: &[(Ipv6Addr, u64)]) -> bool {
        let full = known.len() as f64 >= FULL_PART * f64::from(DUPLICATE_CLIENTS_MAX);
        if full {
            known.iter().for_each(|(address, _)| self.duplicates.delete(&address.octets()));
        }
        full
    }

    /// Numbers of the programs among those of this kernel.
    pub fn programs(&self) -> Vec<u32> {
        self.running.iter().filter_map(Running::id).collect()
    }
}

/// Adds an element of the map, with a value for each CPU, to the counts by context: several soft
/// interrupts have one.
fn add(all: &mut HashMap<Key, Count>, key: &[u8], values: &[u8]) {
    let n = key.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
    let context = Context::of((n >> 8) as u8);
    let key = Key { interface: (n >> 32) as u32, context, bucket: n as u8 };
    let sum = all.entry(key).or_default();
    for one in values.chunks_exact(SEGMENT_VALUE) {
        let [segments, bytes, squares] = [0, 8, 16].map(|at| u64_at(one, at));
        *sum = sum.plus(Count { segments, bytes, squares });
    }
}

/// Vector, segments, duplicates, lost.
fn maps() -> Result<[Map; 4], Unavailable> {
    let map = |kind, sizes, elements| {
        Map::create(kind, sizes, elements).map_err(|e| match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Unavailable::Rights,
            _ => Unavailable::Memory(e),
        })
    };
    Ok([
        map(MapKind::ArrayPerCpu, (4, 8), 1)?,
        map(MapKind::HashPerCpu, (SEGMENT_KEY, SEGMENT_VALUE), SEGMENT_COUNTS_MAX)?,
        map(MapKind::Hash, (CLIENT_KEY, 8), DUPLICATE_CLIENTS_MAX)?,
        map(MapKind::Array, (4, 8), 2)?,
    ])
}

fn types(root: &Root) -> Result<Btf, Unavailable> {
    use std::io::Read;
    let path = root.path(TYPES.trim_start_matches('/'));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(Unavailable::Hidden)?;
    let most = btf::FILE_MAX as u64;
    file.take(most).read_to_end(&mut bytes).map_err(Unavailable::Hidden)?;
    Ok(Btf::parse(bytes)?)
}

fn refused(program: &'static CStr, why: Refused) -> Unavailable {
    // The verifier's own refusal of an access is EACCES.
    if why.error.raw_os_error() == Some(libc::EPERM) {
        return Unavailable::Rights;
    }
    let reason = match why.reason.is_empty() {
        true => why.error.to_string(),
        false => format!("{} ({})", why.reason, why.error),
    };
    Unavailable::Refused { program: program.to_str().unwrap_or_default(), reason }
}

/// The number of the network namespace of this process.
fn namespace(root: &Root) -> Option<u32> {
    let link = root.link(NAMESPACE)?;
    let number = link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?;
    number.parse().ok()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_ne_bytes(*b))
}

#[cfg(test)]
mod tests;
