//! Packets as a TUN device hands them over: with a `virtio_net_hdr` (Virtio 1.2, §5.1.6) before
//! them, and up to 64 KiB of TCP or UDP payload behind one header, which hardware would cut into
//! segments. They are cut here, into single segments or into runs of some, because the line knows
//! only segments.
//!
//! Checksums may be left to hardware, too: then the field holds the sum of the pseudo-header, and
//! the kernel at the other end believes the rest. Only what is damaged on the way is summed here,
//! so that its receiver notices.

use base::limits::BRIDGE_SEGMENT_MIN;

/// Bytes of the `virtio_net_hdr` before each packet.
pub const HEADER: usize = 10;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is not complete.
const NEEDS_CSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_*`: one packet, TCP over IPv4 or IPv6, UDP; and the bit for ECN.
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Flags of TCP that only the first segment keeps (CWR), and only the last (FIN, PSH).
const FIRST_ONLY: u8 = 0x80;
const LAST_ONLY: u8 = 0x09;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const HEADER_IP4: usize = 20;
const HEADER_IP6: usize = 40;
const HEADER_TCP: usize = 20;
const HEADER_UDP: usize = 8;

/// Where what is cut lies in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    kind: u8,
    /// Where the header of TCP or UDP begins.
    transport: usize,
    /// Where the payload begins.
    payload: usize,
    /// Payload of a segment.
    size: usize,
}

/// A packet with its `virtio_net_hdr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    bytes: Vec<u8>,
    cut: Option<Cut>,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes(pair.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}

/// Fields of the `virtio_net_hdr`, in the machine's own byte order as TUN has them.
fn native(bytes: &[u8], at: usize) -> Option<usize> {
    let pair = bytes.get(at..at + 2)?;
    Some(usize::from(u16::from_ne_bytes(pair.try_into().ok()?)))
}

/// The Internet checksum's sum (RFC 1071), not yet folded.
fn sum(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>() + last
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

impl Packet {
    /// What a device has handed over: a `virtio_net_hdr` and a packet. `None` when it is too short
    /// to be one.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() > HEADER).then_some(())?;
        let cut = Cut::find(&bytes);
        Some(Self { bytes, cut })
    }

    /// With its `virtio_net_hdr`.
    pub fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// The packet itself.
    fn ip(&self) -> &[u8] {
        self.bytes.get(HEADER..).unwrap_or_default()
    }

    /// Packets that it is on the line.
    pub fn segments(&self) -> usize {
        let Some(cut) = self.cut else { return 1 };
        self.ip().len().saturating_sub(cut.payload).div_ceil(cut.size).max(1)
    }

    /// Bytes of its packet number `at` on the line.
    pub fn segment_bytes(&self, at: usize) -> usize {
        let Some(cut) = self.cut else { return self.ip().len() };
        let payload = self.ip().len() - cut.payload;
        cut.payload + cut.size.min(payload.saturating_sub(at * cut.size))
    }

    /// Writes `count` of its packets, from number `from` on, as one piece with its
    /// `virtio_net_hdr`, in place of what `out` held.
    pub fn piece(&self, from: usize, count: usize, out: &mut Vec<u8>) {
        out.clear();
        let whole = from == 0 && count >= self.segments();
        match self.cut {
            Some(cut) if !whole => {
                if self.cut_out(&cut, from, count, out).is_none() {
                    // Every offset was checked when the packet was looked at.
                    debug_assert!(false, "a packet that cannot be cut: {cut:?}");
                    out.clear();
                }
            }
            _ => out.extend_from_slice(&self.bytes),
        }
    }

    fn cut_out(&self, cut: &Cut, from: usize, count: usize, out: &mut Vec<u8>) -> Option<()> {
        let ip = self.ip();
        let start = cut.payload + from * cut.size;
        let end = (start + count * cut.size).min(ip.len());
        let data = ip.get(start..end)?;
        out.extend_from_slice(self.bytes.get(..HEADER)?);
        out.extend_from_slice(ip.get(..cut.payload)?);
        out.extend_from_slice(data);
        if data.len() <= cut.size {
            // One segment: no kind, no size.
            *out.get_mut(1)? = GSO_NONE;
            out.get_mut(4..6)?.fill(0);
        }
        let headers = u16::try_from(cut.payload).ok()?;
        out.get_mut(2..4)?.copy_from_slice(&headers.to_ne_bytes());
        let last = end == ip.len();
        cut.adapt(out.get_mut(HEADER..)?, from, last)
    }
}

impl Cut {
    /// Where a packet is to be cut; `None` when it is one segment, or contradicts its header.
    fn find(bytes: &[u8]) -> Option<Self> {
        let flags = *bytes.first()?;
        let kind = *bytes.get(1)? & !GSO_ECN;
        let (size, transport) = (native(bytes, 4)?, native(bytes, 6)?);
        let ip = bytes.get(HEADER..)?;
        let least = if ip.first()? >> 4 == 6 { HEADER_IP6 } else { HEADER_IP4 };
        if flags & NEEDS_CSUM == 0 || size < BRIDGE_SEGMENT_MIN || transport < least {
            return None;
        }
        let header = match kind {
            GSO_TCP4 | GSO_TCP6 => usize::from(*ip.get(transport + 12)? >> 4) * 4,
            GSO_UDP => HEADER_UDP,
            _ => return None,
        };
        let payload = transport + header;
        let fits = ip.len() > payload + size && (kind == GSO_UDP || header >= HEADER_TCP);
        fits.then_some(Self { kind, transport, payload, size })
    }

    /// Makes the copied headers right for a piece that begins at segment `from`.
    fn adapt(&self, ip: &mut [u8], from: usize, last: bool) -> Option<()> {
        let length = ip.len();
        let body = u16::try_from(length - self.transport).ok()?;
        if ip.first()? >> 4 == 6 {
            put(ip, 4, u16::try_from(length - HEADER_IP6).ok()?)?;
        } else {
            put(ip, 2, u16::try_from(length).ok()?)?;
            let id = word(ip, 4)?.wrapping_add(from as u16);
            put(ip, 4, id)?;
            put(ip, 10, 0)?;
            let header = usize::from(*ip.first()? & 15) * 4;
            let check = !fold(sum(ip.get(..header)?));
            put(ip, 10, check)?;
        }
        let at = self.transport;
        if self.kind == GSO_UDP {
            put(ip, at + 4, body)?;
            let pseudo = pseudo_sum(ip, PROTOCOL_UDP, body)?;
            return put(ip, at + 6, pseudo);
        }
        let number = ip.get_mut(at + 4..at + 8)?;
        let old = u32::from_be_bytes((&*number).try_into().ok()?);
        let new = old.wrapping_add(u32::try_from(from * self.size).ok()?);
        number.copy_from_slice(&new.to_be_bytes());
        let flags = ip.get_mut(at + 13)?;
        if from > 0 {
            *flags &= !FIRST_ONLY;
        }
        if !last {
            *flags &= !LAST_ONLY;
        }
        let pseudo = pseudo_sum(ip, PROTOCOL_TCP, body)?;
        put(ip, at + 16, pseudo)
    }
}

/// The folded sum of the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1), as the field of a checksum
/// holds it that is not complete.
fn pseudo_sum(ip: &[u8], protocol: u8, length: u16) -> Option<u16> {
    let addresses = if ip.first()? >> 4 == 6 { ip.get(8..40)? } else { ip.get(12..20)? };
    Some(fold(sum(addresses) + u64::from(protocol) + u64::from(length)))
}

/// Completes the checksum of a piece of one segment, so that its receiver can detect damage.
pub fn complete(piece: &mut [u8]) {
    let Some(()) = try_complete(piece) else { return };
    if let Some(flags) = piece.first_mut() {
        *flags &= !NEEDS_CSUM;
    }
}

fn try_complete(piece: &mut [u8]) -> Option<()> {
    (piece.first()? & NEEDS_CSUM != 0).then_some(())?;
    let (start, offset) = (native(piece, 6)?, native(piece, 8)?);
    let ip = piece.get_mut(HEADER..)?;
    let check = match !fold(sum(ip.get(start..)?)) {
        // Zero would mean that there is none (RFC 768).
        0 => 0xffff,
        check => check,
    };
    put(ip, start + offset, check)
}

/// Turns the bit that `flip` names, modulo all there are.
pub fn turn_bit(bytes: &mut [u8], flip: u64) {
    let bits = 8 * bytes.len() as u64;
    if let Some(at) = flip.checked_rem(bits)
        && let Some(byte) = bytes.get_mut((at / 8) as usize)
    {
        *byte ^= 1 << (at % 8);
    }
}

/// The packet behind a `virtio_net_hdr`.
pub fn behind_header(piece: &mut [u8]) -> &mut [u8] {
    piece.get_mut(HEADER..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
