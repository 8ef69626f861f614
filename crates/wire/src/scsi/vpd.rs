//! Vital product data (SPC-5 §7.7, SBC-4 §6.6): pages 00h, 80h, 83h, 86h,
//! 8Fh (SPC-5 §7.7.18), B0h, B1h and B2h.

use base::limits::SCSI_LIST_MAX;

use super::ResponseError;
use super::fields::{
    bit_at, end_list_u16, put_at, set_at, slice_at, u8_at, u16_at, u32_at, u64_at,
};

/// Page codes.
pub mod page {
    /// Supported VPD pages.
    pub const SUPPORTED: u8 = 0x00;
    /// Unit serial number.
    pub const SERIAL: u8 = 0x80;
    /// Device identification.
    pub const IDENTIFICATION: u8 = 0x83;
    /// Extended INQUIRY data.
    pub const EXTENDED: u8 = 0x86;
    /// Third-party copy.
    pub const THIRD_PARTY_COPY: u8 = 0x8f;
    /// Block limits.
    pub const BLOCK_LIMITS: u8 = 0xb0;
    /// Block device characteristics.
    pub const CHARACTERISTICS: u8 = 0xb1;
    /// Logical block provisioning.
    pub const PROVISIONING: u8 = 0xb2;
}

/// Bytes before the contents of a page.
const HEAD: usize = 4;
/// Bytes of the contents of pages B0h and B1h, and of 86h.
const LONG: usize = 0x3c;

/// Appends a page of a disk: its head, then what `body` appends.
fn put_page(code: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, code, 0, 0]);
    body(out);
    end_list_u16(out.get_mut(start..).unwrap_or_default(), 2, HEAD);
}

/// The contents of a page, which must be this one, as far as they go.
fn open(code: u8, data: &[u8]) -> Result<&[u8], ResponseError> {
    if data.len() < HEAD {
        return Err(ResponseError::Short { what: "head of a VPD page" });
    }
    if u8_at(data, 1) != code {
        let got = u32::from(u8_at(data, 1));
        return Err(ResponseError::BadValue { what: "code of a VPD page", got });
    }
    Ok(slice_at(data, HEAD, usize::from(u16_at(data, 2))))
}

/// The contents of a page of fixed length, that many bytes at least.
fn open_fixed(code: u8, data: &[u8], length: usize) -> Result<&[u8], ResponseError> {
    let body = open(code, data)?;
    if body.len() < length { Err(ResponseError::Short { what: "VPD page" }) } else { Ok(body) }
}

/// Appends page 00h: the codes of all pages, which must be in order.
pub fn put_supported(codes: &[u8], out: &mut Vec<u8>) {
    debug_assert!(codes.is_sorted());
    put_page(page::SUPPORTED, out, |out| out.extend_from_slice(codes));
}

/// The codes in page 00h.
///
/// # Errors
/// [`ResponseError`].
pub fn supported(data: &[u8]) -> Result<&[u8], ResponseError> {
    open(page::SUPPORTED, data)
}

/// Appends page 80h: a serial number in ASCII.
pub fn put_serial(serial: &str, out: &mut Vec<u8>) {
    put_page(page::SERIAL, out, |out| out.extend_from_slice(serial.as_bytes()));
}

/// The serial number in page 80h.
///
/// # Errors
/// [`ResponseError`].
pub fn serial(data: &[u8]) -> Result<&[u8], ResponseError> {
    open(page::SERIAL, data)
}

/// What a designator names (SPC-5 §7.7.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Association {
    /// The logical unit.
    Unit = 0,
    /// The port that received the command.
    Port = 1,
    /// The target device.
    Device = 2,
}

/// A designator (SPC-5 §7.7.6.1): a name for a unit, a port or a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Designator {
    /// Protocol of a port or device (5 for iSCSI), if reported.
    pub protocol: Option<u8>,
    /// 1 binary, 2 ASCII, 3 UTF-8.
    pub code_set: u8,
    /// What it names.
    pub association: Association,
    /// Type: 1 T10, 3 NAA, 4 relative port, 5 port group, 8 SCSI name string.
    pub kind: u8,
    /// The name: at most 255 bytes.
    pub bytes: Vec<u8>,
}

/// Protocol identifier of iSCSI (SPC-5 §7.6.1).
pub const ISCSI: u8 = 5;

impl Designator {
    fn of(code_set: u8, association: Association, kind: u8, bytes: Vec<u8>) -> Self {
        let protocol = (association != Association::Unit).then_some(ISCSI);
        Self { protocol, code_set, association, kind, bytes }
    }

    /// NAA of 16 bytes, type 6: the first 4 bits must be 6.
    pub fn naa6(name: [u8; 16]) -> Self {
        debug_assert_eq!(name[0] >> 4, 6);
        Self::of(1, Association::Unit, 3, name.to_vec())
    }

    /// T10 vendor identification and what the vendor adds.
    pub fn t10(vendor: [u8; 8], name: &str) -> Self {
        Self::of(2, Association::Unit, 1, [&vendor[..], name.as_bytes()].concat())
    }

    /// Relative target port identifier.
    pub fn relative_port(port: u16) -> Self {
        let [high, low] = port.to_be_bytes();
        Self::of(1, Association::Port, 4, vec![0, 0, high, low])
    }

    /// Target port group.
    pub fn port_group(group: u16) -> Self {
        let [high, low] = group.to_be_bytes();
        Self::of(1, Association::Port, 5, vec![0, 0, high, low])
    }

    /// SCSI name string, with the zero bytes that end it.
    pub fn name_string(association: Association, name: &str) -> Self {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        Self::of(3, association, 8, bytes)
    }

    fn put(&self, out: &mut Vec<u8>) {
        debug_assert!(self.bytes.len() <= 255);
        let with_protocol = if self.protocol.is_some() { 0x80 } else { 0 };
        let kind = with_protocol | (self.association as u8) << 4 | self.kind & 0xf;
        let set = self.protocol.unwrap_or(0) << 4 | self.code_set & 0xf;
        out.extend_from_slice(&[set, kind, 0, self.bytes.len() as u8]);
        out.extend_from_slice(&self.bytes);
    }
}

/// Appends page 83h.
pub fn put_identification(designators: &[Designator], out: &mut Vec<u8>) {
    put_page(page::IDENTIFICATION, out, |out| designators.iter().for_each(|d| d.put(out)));
}

/// The designators in page 83h, as far as they are whole. Those of reserved associations are left
/// out.
///
/// # Errors
/// [`ResponseError`].
pub fn identification(data: &[u8]) -> Result<Vec<Designator>, ResponseError> {
    let mut rest = open(page::IDENTIFICATION, data)?;
    let mut list = Vec::new();
    while let [set, kind, _, length, ref after @ ..] = *rest {
        let Some((bytes, after)) = after.split_at_checked(usize::from(length)) else { break };
        if list.len() == SCSI_LIST_MAX {
            return Err(ResponseError::TooLong { what: "designators", max: SCSI_LIST_MAX });
        }
        let association = match kind >> 4 & 3 {
            0 => Some(Association::Unit),
            1 => Some(Association::Port),
            2 => Some(Association::Device),
            _ => None,
        };
        if let Some(association) = association {
            list.push(Designator {
                protocol: (kind & 0x80 != 0).then_some(set >> 4),
                code_set: set & 0xf,
                association,
                kind: kind & 0xf,
                bytes: bytes.to_vec(),
            });
        }
        rest = after;
    }
    Ok(list)
}

/// Page 86h: what else a unit can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extended {
    /// HEADSUP: HEAD OF QUEUE tasks.
    pub head_of_queue: bool,
    /// ORDSUP: ORDERED tasks.
    pub ordered: bool,
    /// SIMPSUP: SIMPLE tasks.
    pub simple: bool,
    /// V_SUP: it has a volatile cache.
    pub volatile_cache: bool,
    /// LUICLR: a unit attention after a loss of a nexus is cleared by that nexus only.
    pub nexus_loss_cleared: bool,
    /// Most bytes of sense data; 0 for not reported.
    pub sense_max: u8,
}

impl Extended {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; LONG];
        set_at(&mut b, 1, 4, self.head_of_queue);
        set_at(&mut b, 1, 2, self.ordered);
        set_at(&mut b, 1, 1, self.simple);
        set_at(&mut b, 2, 1, self.volatile_cache);
        set_at(&mut b, 3, 1, self.nexus_loss_cleared);
        b[9] = self.sense_max;
        put_page(page::EXTENDED, out, |out| out.extend_from_slice(&b));
    }

    /// Reads the page.
    ///
    /// # Errors
    /// [`ResponseError`].
    pub fn decode(data: &[u8]) -> Result<Self, ResponseError> {
        let b = open_fixed(page::EXTENDED, data, 10)?;
        Ok(Self {
            head_of_queue: bit_at(b, 1, 4),
            ordered: bit_at(b, 1, 2),
            simple: bit_at(b, 1, 1),
            volatile_cache: bit_at(b, 2, 1),
            nexus_loss_cleared: bit_at(b, 3, 1),
            sense_max: u8_at(b, 9),
        })
    }
}

/// Page 8Fh: what a unit copies for others (SPC-5 §7.7.18).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThirdPartyCopy {
    /// Commands that there are: operation codes, each with its service actions.
    pub commands: Vec<(u8, Vec<u8>)>,
    /// Other parameters, in all of these descriptors.
    pub parameters: super::copy::OperatingParameters,
}

/// Types of descriptors of page 8Fh.
mod third_party {
    pub(super) const COMMANDS: u16 = 0x0001;
    pub(super) const PARAMETER_DATA: u16 = 0x0004;
    pub(super) const DESCRIPTORS: u16 = 0x0008;
    pub(super) const CSCD_IDS: u16 = 0x000c;
    pub(super) const GENERAL: u16 = 0x8001;
}

/// Appends a descriptor of page 8Fh, filled up to a multiple of four bytes.
fn put_third_party(kind: u16, body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(body.len().next_multiple_of(4) as u16).to_be_bytes());
    out.extend_from_slice(body);
    out.resize(out.len().next_multiple_of(4), 0);
}

impl ThirdPartyCopy {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let p = &self.parameters;
        let mut list = vec![0];
        for (opcode, actions) in &self.commands {
            list.extend_from_slice(&[*opcode, actions.len() as u8]);
            list.extend_from_slice(actions);
        }
        list[0] = list.len() as u8 - 1;
        let mut data = [0; 28];
        put_at(&mut data, 4, &p.targets_max.to_be_bytes());
        put_at(&mut data, 6, &p.segments_max.to_be_bytes());
        put_at(&mut data, 8, &p.descriptors_max.to_be_bytes());
        let mut general = [0; 32];
        put_at(&mut general, 0, &u32::from(p.concurrent_max).to_be_bytes());
        put_at(&mut general, 4, &u32::from(p.concurrent_max).to_be_bytes());
        put_at(&mut general, 8, &p.segment_max.to_be_bytes());
        general[12] = p.granularity;
        let mut page = Vec::new();
        put_third_party(third_party::COMMANDS, &list, &mut page);
        put_third_party(third_party::PARAMETER_DATA, &data, &mut page);
        let types = [&[p.types.len() as u8][..], &p.types].concat();
        put_third_party(third_party::DESCRIPTORS, &types, &mut page);
        put_third_party(third_party::CSCD_IDS, &[0, 0], &mut page);
        put_third_party(third_party::GENERAL, &general, &mut page);
        put_page(page::THIRD_PARTY_COPY, out, |out| out.extend_from_slice(&page));
    }

    /// Reads the page, as far as its descriptors are whole.
    ///
    /// # Errors
    /// [`ResponseError`].
    pub fn decode(data: &[u8]) -> Result<Self, ResponseError> {
        let mut rest = open(page::THIRD_PARTY_COPY, data)?;
        let mut found = Self::default();
        while rest.len() >= 4 {
            let (kind, length) = (u16_at(rest, 0), usize::from(u16_at(rest, 2)));
            let Some(b) = rest.get(4..4 + length) else { break };
            let p = &mut found.parameters;
            match kind {
                third_party::COMMANDS => found.commands = commands_in(b),
                third_party::PARAMETER_DATA => {
                    (p.targets_max, p.segments_max) = (u16_at(b, 4), u16_at(b, 6));
                    p.descriptors_max = u32_at(b, 8);
                }
                third_party::DESCRIPTORS => {
                    p.types = slice_at(b, 1, usize::from(u8_at(b, 0))).to_vec();
                }
                third_party::GENERAL => {
                    p.concurrent_max = u8::try_from(u32_at(b, 0)).unwrap_or(u8::MAX);
                    (p.segment_max, p.granularity) = (u32_at(b, 8), u8_at(b, 12));
                }
                _ => {}
            }
            rest = rest.get(4 + length..).unwrap_or_default();
        }
        Ok(found)
    }
}

/// Operation codes and service actions in such a list, as far as they are whole.
fn commands_in(b: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut rest = slice_at(b, 1, usize::from(u8_at(b, 0)));
    let mut commands = Vec::new();
    while let [opcode, count, after @ ..] = rest {
        let Some((actions, after)) = after.split_at_checked(usize::from(*count)) else { break };
        commands.push((*opcode, actions.to_vec()));
        rest = after;
    }
    commands
}

/// Page B0h: limits in blocks; 0 for no limit, or not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockLimits {
    /// WSNZ: a WRITE SAME of 0 blocks is refused.
    pub write_same_non_zero: bool,
    /// Most blocks of COMPARE AND WRITE; 0 if there is none.
    pub compare_and_write_max: u8,
    /// Multiples that are transferred best.
    pub transfer_granularity: u16,
    /// Most blocks of a transfer.
    pub transfer_max: u32,
    /// Blocks beyond which a transfer gets slower.
    pub transfer_optimal: u32,
    /// Most blocks of PRE-FETCH.
    pub prefetch_max: u32,
    /// Most blocks of one UNMAP; 0 if there is none.
    pub unmap_max: u32,
    /// Most descriptors of one UNMAP; 0 if there is none.
    pub unmap_descriptors_max: u32,
    /// Multiples that are unmapped best.
    pub unmap_granularity: u32,
    /// First block of such a multiple, if it is known.
    pub unmap_alignment: Option<u32>,
    /// Most blocks of WRITE SAME.
    pub write_same_max: u64,
}

impl BlockLimits {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; LONG];
        set_at(&mut b, 0, 1, self.write_same_non_zero);
        b[1] = self.compare_and_write_max;
        put_at(&mut b, 2, &self.transfer_granularity.to_be_bytes());
        put_at(&mut b, 4, &self.transfer_max.to_be_bytes());
        put_at(&mut b, 8, &self.transfer_optimal.to_be_bytes());
        put_at(&mut b, 12, &self.prefetch_max.to_be_bytes());
        put_at(&mut b, 16, &self.unmap_max.to_be_bytes());
        put_at(&mut b, 20, &self.unmap_descriptors_max.to_be_bytes());
        put_at(&mut b, 24, &self.unmap_granularity.to_be_bytes());
        if let Some(alignment) = self.unmap_alignment {
            put_at(&mut b, 28, &(1 << 31 | alignment).to_be_bytes());
        }
        put_at(&mut b, 32, &self.write_same_max.to_be_bytes());
        put_page(page::BLOCK_LIMITS, out, |out| out.extend_from_slice(&b));
    }

    /// Reads the page. Old units send 12 bytes of it; what they leave out is 0.
    ///
    /// # Errors
    /// [`ResponseError`].
    pub fn decode(data: &[u8]) -> Result<Self, ResponseError> {
        let b = open_fixed(page::BLOCK_LIMITS, data, 12)?;
        let alignment = u32_at(b, 28);
        Ok(Self {
            write_same_non_zero: bit_at(b, 0, 1),
            compare_and_write_max: u8_at(b, 1),
            transfer_granularity: u16_at(b, 2),
            transfer_max: u32_at(b, 4),
            transfer_optimal: u32_at(b, 8),
            prefetch_max: u32_at(b, 12),
            unmap_max: u32_at(b, 16),
            unmap_descriptors_max: u32_at(b, 20),
            unmap_granularity: u32_at(b, 24),
            unmap_alignment: (alignment >> 31 == 1).then_some(alignment & (u32::MAX >> 1)),
            write_same_max: u64_at(b, 32),
        })
    }
}

/// Page B1h: what kind of medium it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Characteristics {
    /// Rotations a minute; 1 for a medium that does not rotate, 0 for not reported.
    pub rotation_rate: u16,
    /// Form factor; 0 for not reported.
    pub form_factor: u8,
}

impl Characteristics {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; LONG];
        put_at(&mut b, 0, &self.rotation_rate.to_be_bytes());
        b[3] = self.form_factor & 0xf;
        put_page(page::CHARACTERISTICS, out, |out| out.extend_from_slice(&b));
    }

    /// Reads the page.
    ///
    /// # Errors
    /// [`ResponseError`].
    pub fn decode(data: &[u8]) -> Result<Self, ResponseError> {
        let b = open_fixed(page::CHARACTERISTICS, data, 4)?;
        Ok(Self { rotation_rate: u16_at(b, 0), form_factor: u8_at(b, 3) & 0xf })
    }
}

/// Page B2h: how blocks come to have space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Provisioning {
    /// LBPU: it has UNMAP.
    pub unmap: bool,
    /// LBPWS: WRITE SAME(16) can unmap.
    pub write_same_16: bool,
    /// LBPWS10: WRITE SAME(10) can unmap.
    pub write_same_10: bool,
    /// LBPRZ: what unmapped blocks read as: 1 for zeros (3 bits).
    pub reads_zeros: u8,
    /// Type: 0 not reported, 1 resource, 2 thin.
    pub kind: u8,
}

impl Provisioning {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0, (self.reads_zeros & 7) << 2, self.kind & 7, 0];
        set_at(&mut b, 1, 0x80, self.unmap);
        set_at(&mut b, 1, 0x40, self.write_same_16);
        set_at(&mut b, 1, 0x20, self.write_same_10);
        put_page(page::PROVISIONING, out, |out| out.extend_from_slice(&b));
    }

    /// Reads the page.
    ///
    /// # Errors
    /// [`ResponseError`].
    pub fn decode(data: &[u8]) -> Result<Self, ResponseError> {
        let b = open_fixed(page::PROVISIONING, data, 4)?;
        Ok(Self {
            unmap: bit_at(b, 1, 0x80),
            write_same_16: bit_at(b, 1, 0x40),
            write_same_10: bit_at(b, 1, 0x20),
            reads_zeros: u8_at(b, 1) >> 2 & 7,
            kind: u8_at(b, 2) & 7,
        })
    }
}
