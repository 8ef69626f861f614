//! What a network device does in place of the kernel (`struct ethtool_value`, linux/ethtool.h).

use serde_json::{Map, Value};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Name and number of the question.
const QUESTIONS: [(&str, u32); 6] = [
    ("rx-checksum", 0x14),
    ("tx-checksum", 0x16),
    ("scatter-gather", 0x18),
    ("tcp-segmentation", 0x1e),
    ("generic-segmentation", 0x23),
    ("generic-receive", 0x2b),
];
/// Request of ioctl(2) for such questions.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// A question and its answer.
#[repr(C)]
struct EthtoolValue {
    question: u32,
    answer: u32,
}

/// By name whether a device does it; without those that it does not answer.
pub(super) fn of(device: &str) -> Map<String, Value> {
    // SAFETY: a plain system call.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Map::new();
    }
    // SAFETY: it was just opened, and is owned by nothing else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let answers = QUESTIONS.iter().filter_map(|(name, question)| {
        Some(((*name).to_owned(), ask(&socket, device, *question)?))
    });
    answers.collect()
}

fn ask(socket: &OwnedFd, device: &str, question: u32) -> Option<Value> {
    // SAFETY: a structure of numbers, of which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len().checked_sub(1)?;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    let mut value = EthtoolValue { question, answer: 0 };
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request names a device and points to a value that outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    (done == 0).then_some(Value::from(value.answer != 0))
}
