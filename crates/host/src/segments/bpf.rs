//! bpf(2): maps, programs, where they are attached. The only file here that passes addresses to the
//! kernel. Nothing is pinned: what this process made is gone when it is.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Commands of bpf(2) (linux/bpf.h).
const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_DELETE: i32 = 3;
const PROGRAM_LOAD: i32 = 5;
#[cfg(test)]
const PROGRAM_BY_ID: i32 = 13;
const INFO_BY_DESCRIPTOR: i32 = 15;
const RAW_TRACEPOINT_OPEN: i32 = 17;
const MAP_LOOKUP_BATCH: i32 = 24;

/// `BPF_PROG_TYPE_TRACING`, and its attachment to a tracepoint (`BPF_TRACE_RAW_TP`).
const TRACING: u32 = 26;
const AT_TRACEPOINT: u32 = 23;
/// Bytes of the part of `union bpf_attr` that any command here uses.
const ATTRIBUTES: usize = 128;
/// Bytes of the verifier's output that are retained: its last lines name the fault.
const VERIFIER_LOG: usize = 64 << 10;
/// `ENOTSUPP`, which the kernel has for itself and libc has no name of.
const NOT_SUPPORTED: i32 = 524;
/// How often a program is loaded while the verifier is interrupted: by any signal or work that
/// waits for this thread, such as what io_uring leaves behind.
const LOAD_ATTEMPTS: u32 = 5;
/// Elements of a batch.
const BATCH: usize = 256;

/// The CPUs that this machine may ever have, as `0-3,8`: the kernel writes a value for each.
const CPUS: &str = "/sys/devices/system/cpu/possible";

/// What a map is (`enum bpf_map_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MapKind {
    /// One value for each key.
    Hash = 1,
    /// One value for each number.
    Array = 2,
    /// A value for each key and CPU.
    HashPerCpu = 5,
    /// A value for each number and CPU.
    ArrayPerCpu = 6,
}

/// A program that the kernel did not take.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub error: io::Error,
    /// The last line of the verifier's output; empty if there was none.
    pub reason: String,
}

/// `union bpf_attr`, filled field by field at the offsets of linux/bpf.h.
#[repr(C, align(8))]
struct Attributes([u8; ATTRIBUTES]);

impl Attributes {
    fn new() -> Self {
        Self([0; ATTRIBUTES])
    }

    fn u32(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// The address of memory that the caller keeps alive over the call.
    fn address<T: ?Sized>(self, at: usize, of: *const T) -> Self {
        self.u64(at, of.cast::<u8>() as usize as u64)
    }

    fn get_u32(&self, at: usize) -> u32 {
        self.0[at..].first_chunk().map_or(0, |b| u32::from_ne_bytes(*b))
    }
}

/// # Safety
/// Every address in `attributes` is of memory that is as large as the command requires, and
/// writable where it writes.
unsafe fn bpf(command: i32, attributes: &mut Attributes) -> io::Result<i32> {
    // SAFETY: `attributes` has ATTRIBUTES bytes; the rest is what this function's callers hold.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes.0.as_mut_ptr(), ATTRIBUTES) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the kernel made it for this call; nothing else owns it. It is closed on exec.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// A map.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    key: usize,
    value: usize,
    /// Values of an element: the possible CPUs, or 1.
    copies: usize,
}

impl Map {
    /// A map of at most `elements` elements.
    ///
    /// # Errors
    /// The rights are missing, or the memory; or the number of CPUs is unknown.
    pub fn create(kind: MapKind, (key, value): (usize, usize), elements: u32) -> io::Result<Self> {
        debug_assert!(value.is_multiple_of(8), "the kernel rounds values of CPUs up");
        let attributes = Attributes::new().u32(0, kind as u32).u32(4, key as u32);
        let mut attributes = attributes.u32(8, value as u32).u32(12, elements);
        // SAFETY: no addresses.
        let descriptor = owned(unsafe { bpf(MAP_CREATE, &mut attributes) }?);
        let copies = match kind {
            // The kernel writes a value for each: without their number no buffer is safe.
            MapKind::HashPerCpu | MapKind::ArrayPerCpu => {
                let list = std::fs::read_to_string(CPUS)?;
                cpus(&list).ok_or(io::ErrorKind::InvalidData)?
            }
            MapKind::Hash | MapKind::Array => 1,
        };
        Ok(Self { descriptor, key, value, copies })
    }

    /// As programs name it.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// The values of one element, those of all CPUs behind each other; `None` when there is none.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        assert_eq!(key.len(), self.key);
        let mut values = vec![0u8; self.value * self.copies];
        let attributes = Attributes::new().u32(0, self.descriptor() as u32);
        let mut attributes = attributes.address(8, key).address(16, values.as_mut_ptr());
        // SAFETY: `key` has the map's length, `values` that of all CPUs.
        unsafe { bpf(MAP_LOOKUP, &mut attributes) }.ok()?;
        Some(values)
    }

    /// Takes an element out; one that is not there is no failure.
    pub fn delete(&self, key: &[u8]) {
        assert_eq!(key.len(), self.key);
        let mut attributes = Attributes::new().u32(0, self.descriptor() as u32).address(8, key);
        // SAFETY: `key` has the map's length. A failure is that there is no such element.
        let _ = unsafe { bpf(MAP_DELETE, &mut attributes) };
    }

    /// Calls `each` with the key and the values (as [`Map::get`]) of all elements of a hash.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn each(&self, mut each: impl FnMut(&[u8], &[u8])) -> io::Result<()> {
        let bytes = self.value * self.copies;
        let (mut keys, mut values) = (vec![0u8; self.key * BATCH], vec![0u8; bytes * BATCH]);
        // Where the next batch begins: as large as a key may be.
        let mut place = vec![0u8; self.key.max(8)];
        let mut first = true;
        loop {
            let attributes = match first {
                true => Attributes::new(),
                false => Attributes::new().address(0, place.as_ptr()),
            };
            let attributes = attributes.address(8, place.as_mut_ptr());
            let attributes = attributes.address(16, keys.as_mut_ptr());
            let attributes = attributes.address(24, values.as_mut_ptr()).u32(32, BATCH as u32);
            let mut attributes = attributes.u32(36, self.descriptor() as u32);
            // SAFETY: `keys` and `values` have room for BATCH elements; `place` is as large as a
            // key, which is more than the number of a bucket.
            let done = unsafe { bpf(MAP_LOOKUP_BATCH, &mut attributes) };
            let end = match done {
                Ok(_) => false,
                // No more behind these.
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => true,
                Err(e) => return Err(e),
            };
            let count = (attributes.get_u32(32) as usize).min(BATCH);
            let pairs = keys.chunks_exact(self.key).zip(values.chunks_exact(bytes));
            pairs.take(count).for_each(|(key, values)| each(key, values));
            if end {
                return Ok(());
            }
            first = false;
        }
    }
}

/// How many CPUs a list like `0-3,8` has.
fn cpus(list: &str) -> Option<usize> {
    let mut count = 0usize;
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// A program that runs: taken by the verifier and attached.
#[derive(Debug)]
pub struct Running {
    program: OwnedFd,
    /// Closing it detaches.
    _attached: OwnedFd,
}

impl Running {
    /// Loads a program for the tracepoint with this type (`btf_trace_NAME`) and attaches it.
    ///
    /// # Errors
    /// [`Refused`], with the output of the verifier.
    pub fn start(name: &CStr, code: &[[u8; 8]], tracepoint: u32) -> Result<Self, Refused> {
        let mut text = vec![0u8; VERIFIER_LOG];
        // Without its log first: an answer that does not fit into it would be a failure.
        let program = retried(|| load(name, code, tracepoint, &mut [])).map_err(|error| {
            if error.raw_os_error() != Some(libc::EPERM) {
                // Repeated for its output; the result is known.
                drop(load(name, code, tracepoint, &mut text));
            }
            Refused { error: plain(error), reason: last_line(&text) }
        })?;
        let attributes = Attributes::new().u64(0, 0);
        let mut attributes = attributes.u32(8, program.as_raw_fd() as u32);
        // SAFETY: no address: the program knows its tracepoint.
        let attached = unsafe { bpf(RAW_TRACEPOINT_OPEN, &mut attributes) };
        let attached = attached.map_err(|error| Refused {
            error: plain(error),
            reason: "it cannot be attached".into(),
        })?;
        Ok(Self { program, _attached: owned(attached) })
    }

    /// Its number among the programs of this kernel.
    pub fn id(&self) -> Option<u32> {
        let mut info = [0u8; 64];
        let attributes = Attributes::new().u32(0, self.program.as_raw_fd() as u32);
        let mut attributes = attributes.u32(4, info.len() as u32).address(8, info.as_mut_ptr());
        // SAFETY: `info` is as long as stated.
        unsafe { bpf(INFO_BY_DESCRIPTOR, &mut attributes) }.ok()?;
        info[4..].first_chunk().map(|b| u32::from_ne_bytes(*b))
    }
}

/// Whether a program with this number is loaded; `None` without the right to know.
#[cfg(test)]
pub fn is_loaded(id: u32) -> Option<bool> {
    let mut attributes = Attributes::new().u32(0, id);
    // SAFETY: no addresses.
    match unsafe { bpf(PROGRAM_BY_ID, &mut attributes) } {
        Ok(descriptor) => {
            drop(owned(descriptor));
            Some(true)
        }
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Some(false),
        Err(_) => None,
    }
}

/// The name of an interface of the network namespace that this thread is in.
pub fn interface_name(index: u32) -> Option<String> {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: `name` has the room that the function requires.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return None;
    }
    CStr::from_bytes_until_nul(&name).ok()?.to_str().ok().map(str::to_owned)
}

/// Repeats what was interrupted.
fn retried<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..LOAD_ATTEMPTS {
        match attempt() {
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
            other => return other,
        }
    }
    attempt()
}

fn load(name: &CStr, code: &[[u8; 8]], tracepoint: u32, log: &mut [u8]) -> io::Result<OwnedFd> {
    let license = c"GPL";
    let attributes = Attributes::new().u32(0, TRACING).u32(4, code.len() as u32);
    let attributes = attributes.address(8, code.as_ptr()).address(16, license.as_ptr());
    let attributes = match log.is_empty() {
        true => attributes,
        false => attributes.u32(24, 1).u32(28, log.len() as u32).address(32, log.as_mut_ptr()),
    };
    let mut attributes = attributes.u32(68, AT_TRACEPOINT).u32(108, tracepoint);
    // The last byte of the name stays zero.
    let short = name.to_bytes().len().min(15);
    attributes.0[48..48 + short].copy_from_slice(&name.to_bytes()[..short]);
    // SAFETY: `code`, the licence and `log` are as long as stated and outlive the call.
    unsafe { bpf(PROGRAM_LOAD, &mut attributes) }.map(owned)
}

/// With a name for the one error that has none.
fn plain(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(NOT_SUPPORTED) => io::Error::from(io::ErrorKind::Unsupported),
        _ => error,
    }
}

/// The last line of the verifier's text that is not its statistics.
fn last_line(text: &[u8]) -> String {
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    let text = String::from_utf8_lossy(&text[..end]);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let statistics = ["processed ", "stack depth ", "verification time "];
    let mut said = lines.filter(|line| !statistics.iter().any(|s| line.starts_with(s)));
    said.next_back().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
