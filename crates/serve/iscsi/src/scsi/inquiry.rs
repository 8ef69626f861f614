//! INQUIRY (SPC-5 §6.7): the designators of a unit and what it supports.

use base::limits::{
    ISCSI_COMPARE_BLOCKS_MAX, ISCSI_TRANSFER_MAX, ISCSI_UNMAP_MAX, ISCSI_WRITE_SAME_MAX,
    SCSI_SENSE_MAX, SCSI_UNMAP_DESCRIPTORS_MAX,
};
use wire::scsi::inquiry::Inquiry;
use wire::scsi::vpd::{
    self, Association, BlockLimits, Characteristics, Designator, Extended, Provisioning, page,
};

use super::copy::third_party_copy;
use super::ports::{PORT, PORT_GROUP};
use super::{Outcome, Request, answer, bad_field};
use crate::targets::{PORTAL_GROUP, Target};
use crate::unit::Unit;
use engine::transport::buffers::ReplyBuf;

/// T10 vendor identification.
pub const VENDOR: [u8; 8] = *b"PLIMSOLL";
/// Product identification.
const PRODUCT: [u8; 16] = *b"LUN             ";
/// Pages of vital product data, in order.
const PAGES: [u8; 8] = [
    page::SUPPORTED,
    page::SERIAL,
    page::IDENTIFICATION,
    page::EXTENDED,
    page::THIRD_PARTY_COPY,
    page::BLOCK_LIMITS,
    page::CHARACTERISTICS,
    page::PROVISIONING,
];
/// Version descriptors: SAM-5, SPC-4, SBC-3, iSCSI (SPC-5, table of version descriptor values).
const VERSIONS: [u16; 8] = [0x00a0, 0x0460, 0x04c0, 0x0960, 0, 0, 0, 0];
/// Bytes that are transferred best at once: what the page cache reads ahead.
const OPTIMAL: u32 = 1 << 20;
/// Bytes of a page of the file system, which is what space is given back in.
const GRANULE: u32 = 4096;

/// INQUIRY.
pub(super) fn inquiry(
    request: &Request,
    page: Option<u8>,
    allocation: u16,
    out: &mut ReplyBuf,
) -> Outcome {
    let start = out.len();
    match page {
        None => standard().put(out.vec()),
        Some(page) if PAGES.contains(&page) => put_page(request, page, out.vec()),
        Some(_) => return Err(bad_field(2)),
    }
    Ok(answer(out, start, allocation.into()))
}

/// The data of a unit that exists.
fn standard() -> Inquiry {
    let mut revision = [b' '; 4];
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    revision.iter_mut().zip(version).for_each(|(to, from)| *to = *from);
    Inquiry {
        qualifier: 0,
        device_type: 0,
        is_removable: false,
        version: 6,
        is_hierarchical: true,
        port_groups: 1,
        third_party_copy: true,
        protect: false,
        multi_port: false,
        command_queue: true,
        vendor: VENDOR,
        product: PRODUCT,
        revision,
        versions: VERSIONS,
    }
}

/// The data of a unit that is not there and cannot be.
pub(super) fn absent() -> Inquiry {
    Inquiry { qualifier: 3, device_type: 0x1f, ..standard() }
}

fn put_page(request: &Request, code: u8, out: &mut Vec<u8>) {
    let unit = &request.unit;
    match code {
        page::SUPPORTED => vpd::put_supported(&PAGES, out),
        page::SERIAL => vpd::put_serial(&serial(unit), out),
        page::IDENTIFICATION => {
            vpd::put_identification(&designators(unit, &request.target), out);
        }
        page::EXTENDED => extended().put(out),
        page::THIRD_PARTY_COPY => third_party_copy().put(out),
        page::BLOCK_LIMITS => block_limits(unit).put(out),
        page::CHARACTERISTICS => {
            Characteristics { rotation_rate: 1, form_factor: 0 }.put(out);
        }
        _ => Provisioning {
            unmap: true,
            write_same_16: true,
            write_same_10: true,
            reads_zeros: 1,
            kind: 2,
        }
        .put(out),
    }
}

/// The serial number: the identifier in hexadecimal digits.
fn serial(unit: &Unit) -> String {
    unit.identity.guid.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn designators(unit: &Unit, target: &Target) -> Vec<Designator> {
    let port = format!("{},t,0x{PORTAL_GROUP:04x}", target.name);
    vec![
        Designator::naa6(unit.identity.guid),
        Designator::t10(VENDOR, &serial(unit)),
        Designator::relative_port(PORT),
        Designator::port_group(PORT_GROUP),
        Designator::name_string(Association::Port, &port),
        Designator::name_string(Association::Device, &target.name),
    ]
}

fn extended() -> Extended {
    Extended {
        head_of_queue: false,
        ordered: false,
        simple: true,
        volatile_cache: true,
        nexus_loss_cleared: true,
        sense_max: SCSI_SENSE_MAX as u8,
    }
}

fn block_limits(unit: &Unit) -> BlockLimits {
    let block = unit.identity.block;
    let blocks = |bytes: u64| u32::try_from(bytes / u64::from(block)).unwrap_or(u32::MAX);
    let granule = (GRANULE / block).max(1);
    BlockLimits {
        write_same_non_zero: false,
        compare_and_write_max: ISCSI_COMPARE_BLOCKS_MAX,
        transfer_granularity: granule as u16,
        transfer_max: blocks(ISCSI_TRANSFER_MAX as u64),
        transfer_optimal: blocks(OPTIMAL.into()),
        prefetch_max: 0,
        unmap_max: blocks(ISCSI_UNMAP_MAX),
        unmap_descriptors_max: SCSI_UNMAP_DESCRIPTORS_MAX as u32,
        unmap_granularity: granule,
        unmap_alignment: Some(0),
        write_same_max: blocks(ISCSI_WRITE_SAME_MAX).into(),
    }
}
