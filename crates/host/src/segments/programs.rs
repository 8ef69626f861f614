//! The programs: which soft interrupt a CPU serves, each segment of TCP that is handed to an
//! adapter, each acknowledgement without new information. They change nothing and wait for nothing.

use super::asm::{Alu, Jump, Label, Program, Register, Width};
use super::btf::{Btf, BtfError, Field, Kind};

use Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};

/// Functions of the kernel that programs call (`enum bpf_func_id`).
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;
const READ_KERNEL: i32 = 113;
const TO_TCP_SOCKET: i32 = 137;
/// An update only of what is not there (`BPF_NOEXIST`).
const IF_ABSENT: i32 = 1;
/// States of sockets that are no whole ones (net/tcp_states.h).
const TIME_WAIT: i32 = 6;
const NEW_SYN_RECV: i32 = 12;
/// Payload above that is a header that was read wrongly: BIG TCP ends at 512 KiB.
const PAYLOAD_MAX: i32 = 1 << 24;
/// No transport header is set.
const NO_HEADER: i32 = 0xffff;
/// In a TCP header: the port of the other end, acknowledgement, length, flags, window.
const PORT: i16 = 2;
const ACKNOWLEDGED: i16 = 8;
const LENGTH: i16 = 12;
const FLAGS: i16 = 13;
const WINDOW: i16 = 14;
/// FIN, SYN, RST.
const NO_DUPLICATE: i32 = 7;
/// The option SACK (RFC 2018), and where it is: behind two bytes of padding, either first or behind
/// timestamps (RFC 7323, appendix A); with the length of the shortest header that has it there.
const SACK: i32 = 5;
const SACK_PLACES: [(i16, i32); 2] = [(22, 32), (34, 44)];
/// Bytes of a header up to there.
const HEADER_READ: i32 = 36;

/// The key of a count: interface, running vector, bucket of the size.
pub const SEGMENT_KEY: usize = 8;
/// Segments, bytes of payload, sum of the squares of these.
pub const SEGMENT_VALUE: usize = 24;
/// An address as IPv6 has it.
pub const CLIENT_KEY: usize = 16;

/// Descriptors of the maps that programs use.
#[derive(Debug, Clone, Copy)]
pub struct Maps {
    /// The vector that a CPU serves now, plus 1; 0 in none.
    pub vector: i32,
    /// [`SEGMENT_KEY`] → [`SEGMENT_VALUE`].
    pub segments: i32,
    /// [`CLIENT_KEY`] → duplicate acknowledgements.
    pub duplicates: i32,
    /// What found no room: segments, duplicate acknowledgements.
    pub lost: i32,
}

/// The fields that programs read.
#[derive(Debug, Clone)]
pub struct Fields {
    len: Field,
    head: Field,
    data: Field,
    transport_header: Field,
    sk: Field,
    sk_protocol: Field,
    dport: Field,
    family: Field,
    daddr: Field,
    v6_daddr: Field,
    state: Field,
    sk_net: Field,
    ifindex: Field,
    dev_net: Field,
    inum: Field,
    snd_una: Field,
    snd_wnd: Field,
    packets_out: Field,
    snd_wscale: Field,
}

impl Fields {
    /// As this kernel has them.
    ///
    /// # Errors
    /// The first that it has not.
    pub fn find(btf: &Btf) -> Result<Self, BtfError> {
        let buffer = |name| btf.field("sk_buff", name);
        let common = |name| btf.field("sock_common", name);
        let tcp = |name| btf.field("tcp_sock", name);
        Ok(Self {
            len: buffer("len")?,
            head: buffer("head")?,
            data: buffer("data")?,
            transport_header: buffer("transport_header")?,
            sk: buffer("sk")?,
            sk_protocol: btf.field("sock", "sk_protocol")?,
            dport: common("skc_dport")?,
            family: common("skc_family")?,
            daddr: common("skc_daddr")?,
            v6_daddr: common("skc_v6_daddr")?,
            state: common("skc_state")?,
            sk_net: common("skc_net.net")?,
            ifindex: btf.field("net_device", "ifindex")?,
            dev_net: btf.field("net_device", "nd_net.net")?,
            inum: btf.field("net", "ns.inum")?,
            snd_una: tcp("snd_una")?,
            snd_wnd: tcp("snd_wnd")?,
            packets_out: tcp("packets_out")?,
            snd_wscale: tcp("rx_opt.snd_wscale")?,
        })
    }
}

/// The number of the type that a program for this tracepoint names.
///
/// # Errors
/// This kernel has no such tracepoint.
pub fn tracepoint(btf: &Btf, name: &str) -> Result<u32, BtfError> {
    btf.id(&format!("btf_trace_{name}"), Kind::Alias)
}

impl Program {
    /// `to = from->field`
    fn field(&mut self, to: Register, from: Register, field: Field) -> &mut Self {
        let width = Width::of(field.bytes).unwrap_or(Width::B1);
        // An offset beyond 32 KiB does not exist in what is read; the verifier refuses it.
        self.load(width, to, from, i16::try_from(field.offset).unwrap_or(i16::MAX));
        if let Some((low, bits)) = field.bits {
            self.alu(Alu::Right, to, low as i32).alu(Alu::And, to, (1 << bits) - 1);
        }
        self
    }

    /// The address of the value of this number in an array in `R0`.
    fn element(&mut self, map: i32, number: i32, absent: Label) -> &mut Self {
        self.store_value(Width::B4, R10, -4, number).map(R1, map).address(R2, R10, -4);
        self.call(LOOKUP).jump(Jump::Equal, R0, 0, absent)
    }

    /// The value at the key at `R10 + key` in `R0`, made of zeros at `R10 + zeros` if it is not
    /// there; where there is no room, it is counted in `lost`.
    fn entry(&mut self, map: i32, key: i32, zeros: i32, lost: (i32, i32), out: Label) -> &mut Self {
        let found = self.label();
        self.map(R1, map).address(R2, R10, key).call(LOOKUP).jump(Jump::Differs, R0, 0, found);
        self.map(R1, map).address(R2, R10, key).address(R3, R10, zeros).set(R4, IF_ABSENT);
        self.call(UPDATE);
        // Another CPU may have made it: looking again is right in any case.
        self.map(R1, map).address(R2, R10, key).call(LOOKUP).jump(Jump::Differs, R0, 0, found);
        self.element(lost.0, lost.1, out);
        self.set(R1, 1).add_atomic(R0, 0, R1).go(out);
        self.here(found)
    }

    /// `R1` holds the namespace: leaves if it is none or another.
    fn only_in(&mut self, inum: Field, namespace: u32, out: Label) -> &mut Self {
        self.jump(Jump::Equal, R1, 0, out).field(R1, R1, inum);
        // As 32 bits: an immediate would be extended by its sign.
        self.set(R2, namespace as i32).alu(Alu::Left, R2, 32).alu(Alu::Right, R2, 32);
        self.jump_of(Jump::Differs, R1, R2, out)
    }
}

/// Keeps the vector that a CPU begins to serve (`softirq_entry`), or none when it has ended
/// (`softirq_exit`).
pub fn vector(maps: Maps, begins: bool) -> Vec<[u8; 8]> {
    let mut p = Program::new();
    let out = p.label();
    match begins {
        true => p.load(Width::B8, R6, R1, 0).alu(Alu::Add, R6, 1),
        false => p.set(R6, 0),
    };
    p.element(maps.vector, 0, out).store(Width::B8, R0, 0, R6);
    p.here(out).exit();
    p.assemble()
}

/// Counts a segment with payload (`net_dev_start_xmit`) of the network namespace.
pub fn segment(f: &Fields, maps: Maps, namespace: u32) -> Vec<[u8; 8]> {
    let mut p = Program::new();
    let out = p.label();
    p.load(Width::B8, R6, R1, 0).load(Width::B8, R7, R1, 8);
    p.field(R1, R7, f.dev_net).only_in(f.inum, namespace, out);
    p.field(R8, R6, f.sk).jump(Jump::Equal, R8, 0, out);
    // Requests and those that wait have no more than the common part.
    p.field(R1, R8, f.state).jump(Jump::Equal, R1, TIME_WAIT, out);
    p.jump(Jump::Equal, R1, NEW_SYN_RECV, out);
    p.field(R1, R8, f.sk_protocol).jump(Jump::Differs, R1, libc::IPPROTO_TCP, out);
    payload(&mut p, f, out);
    size(&mut p);
    // The key: context and interface.
    let key = -16;
    p.element(maps.vector, 0, out).load(Width::B8, R1, R0, 0).alu(Alu::And, R1, 15);
    p.alu(Alu::Left, R1, 8).alu_of(Alu::Or, R9, R1);
    p.field(R1, R7, f.ifindex).alu(Alu::Left, R1, 32).alu_of(Alu::Or, R9, R1);
    p.store(Width::B8, R10, key, R9);
    let zeros = -40;
    for n in 0..3 {
        p.store_value(Width::B8, R10, zeros + n * 8, 0);
    }
    p.entry(maps.segments, i32::from(key), i32::from(zeros), (maps.lost, 0), out);
    p.set(R1, 1).add_atomic(R0, 0, R1).add_atomic(R0, 8, R8);
    p.alu_of(Alu::Mul, R8, R8).add_atomic(R0, 16, R8);
    p.here(out).exit();
    p.assemble()
}

/// `R8` = bytes of payload of the buffer `R6` of the socket `R8`; leaves if there are none.
fn payload(p: &mut Program, f: &Fields, out: Label) {
    p.field(R9, R6, f.transport_header).jump(Jump::Equal, R9, NO_HEADER, out);
    p.field(R3, R6, f.head).alu_of(Alu::Add, R3, R9);
    let header = -24;
    p.address(R1, R10, header).set(R2, 16).call(READ_KERNEL).jump(Jump::Differs, R0, 0, out);
    let header = header as i16;
    // In a tunnel the header there is another's: its port differs.
    p.load(Width::B2, R1, R10, header + PORT).field(R2, R8, f.dport);
    p.jump_of(Jump::Differs, R1, R2, out);
    // All headers: up to the end of TCP's from where the data of the buffer begins.
    p.load(Width::B1, R1, R10, header + LENGTH).alu(Alu::Right, R1, 4).alu(Alu::Left, R1, 2);
    p.alu_of(Alu::Add, R1, R9);
    p.field(R2, R6, f.data).field(R3, R6, f.head).alu_of(Alu::Sub, R2, R3);
    p.alu_of(Alu::Sub, R1, R2);
    p.field(R8, R6, f.len).alu_of(Alu::Sub, R8, R1);
    p.jump(Jump::AtMostSigned, R8, 0, out).jump(Jump::Above, R8, PAYLOAD_MAX, out);
}

/// `R9` = the bucket ([`base::buckets::index`]) of `R8`.
pub(super) fn size(p: &mut Program) {
    let done = p.label();
    p.copy(R9, R8).jump(Jump::Below, R9, 4, done);
    // `R1` = the power of two below it.
    p.set(R1, 0).copy(R2, R8);
    for bits in [16, 8, 4, 2, 1] {
        let small = p.label();
        p.jump(Jump::Below, R2, 1 << bits, small);
        p.alu(Alu::Add, R1, bits).alu(Alu::Right, R2, bits);
        p.here(small);
    }
    p.alu(Alu::Sub, R1, 2);
    // The two bits below the highest.
    p.copy(R9, R8).alu_of(Alu::Right, R9, R1).alu(Alu::And, R9, 3);
    p.alu(Alu::Left, R1, 2).alu_of(Alu::Add, R9, R1).alu(Alu::Add, R9, 4);
    p.here(done);
}

/// Counts a duplicate acknowledgement (`tcp_probe`, of each segment of an established connection):
/// RFC 5681 §2, (a) to (e), or with SACK in place of (e): a receiver may open its window meanwhile.
pub fn duplicate(f: &Fields, maps: Maps, namespace: u32) -> Vec<[u8; 8]> {
    let mut p = Program::new();
    let out = p.label();
    p.load(Width::B8, R6, R1, 0).load(Width::B8, R7, R1, 8);
    p.field(R1, R6, f.sk_net).only_in(f.inum, namespace, out);
    let header: i16 = -88;
    p.address(R1, R10, i32::from(header)).set(R2, HEADER_READ).field(R3, R7, f.data);
    p.call(READ_KERNEL).jump(Jump::Differs, R0, 0, out);
    // (b) It has no data, (c) and no SYN or FIN.
    p.load(Width::B1, R1, R10, header + LENGTH).alu(Alu::Right, R1, 4).alu(Alu::Left, R1, 2);
    p.field(R2, R7, f.len).jump_of(Jump::Differs, R1, R2, out);
    p.load(Width::B1, R1, R10, header + FLAGS).jump(Jump::Common, R1, NO_DUPLICATE, out);
    p.copy(R1, R6).call(TO_TCP_SOCKET).jump(Jump::Equal, R0, 0, out).copy(R8, R0);
    // (a) Data is outstanding.
    p.field(R1, R8, f.packets_out).jump(Jump::Equal, R1, 0, out);
    // (d) It acknowledges what was acknowledged last.
    p.load(Width::B4, R1, R10, header + ACKNOWLEDGED).host_order(R1, 32);
    p.field(R2, R8, f.snd_una).jump_of(Jump::Differs, R1, R2, out);
    no_news(&mut p, f, header, out);
    client(&mut p, f, out);
    p.store_value(Width::B8, R10, -48, 0);
    p.entry(maps.duplicates, -40, -48, (maps.lost, 1), out);
    p.set(R1, 1).add_atomic(R0, 0, R1);
    p.here(out).exit();
    p.assemble()
}

/// Leaves if the acknowledgement in the header there carries anything new for the socket `R8`.
fn no_news(p: &mut Program, f: &Fields, header: i16, out: Label) {
    let counted = p.label();
    // (e) Its window is the last one.
    p.load(Width::B2, R1, R10, header + WINDOW).host_order(R1, 16);
    p.field(R2, R8, f.snd_wscale).alu_of(Alu::Left, R1, R2);
    p.field(R2, R8, f.snd_wnd).jump_of(Jump::Equal, R1, R2, counted);
    for (kind, shortest) in SACK_PLACES {
        let absent = p.label();
        p.load(Width::B1, R1, R10, header + LENGTH).alu(Alu::Right, R1, 4).alu(Alu::Left, R1, 2);
        p.jump(Jump::Below, R1, shortest, absent);
        p.load(Width::B1, R1, R10, header + kind).jump(Jump::Equal, R1, SACK, counted);
        p.here(absent);
    }
    p.go(out).here(counted);
}

/// The address of the other end of the socket `R6`, as IPv6 has it, at `R10 - 40`.
fn client(p: &mut Program, f: &Fields, out: Label) {
    let (six, done) = (p.label(), p.label());
    let word = |field: Field, n: u32| Field { offset: field.offset + n * 4, bytes: 4, bits: None };
    p.field(R1, R6, f.family).jump(Jump::Equal, R1, libc::AF_INET6, six);
    p.jump(Jump::Differs, R1, libc::AF_INET, out);
    // ::ffff:a.b.c.d
    p.store_value(Width::B8, R10, -40, 0);
    p.store_value(Width::B4, R10, -32, i32::from_ne_bytes([0, 0, 0xff, 0xff]));
    p.field(R1, R6, f.daddr).store(Width::B4, R10, -28, R1).go(done);
    p.here(six);
    for n in 0..4u32 {
        p.field(R1, R6, word(f.v6_daddr, n)).store(Width::B4, R10, n as i16 * 4 - 40, R1);
    }
    p.here(done);
}

#[cfg(test)]
mod tests;
