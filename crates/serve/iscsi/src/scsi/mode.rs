//! MODE SENSE and MODE SELECT (SPC-5 §6.13 to §6.16) of the values in effect. An initiator can
//! change SWP and D_SENSE of the control page and WCE of the caching page, until the unit is reset.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use vfs::flush::FlushSite;
use wire::scsi::cdb::{ModeSelect, ModeSense};
use wire::scsi::mode::{
    self, BlockDescriptor, Caching, Control, ControlExtension, ErrorRecovery, Exceptions, Header,
    RawPage, page,
};
use wire::scsi::{Asc, ScsiError};

use super::{Done, Fail, Outcome, Request, answer, bad_field, illegal};
use crate::unit::Unit;
use engine::transport::buffers::ReplyBuf;

/// Values that a page can be asked for (PC).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Current,
    Changeable,
    Default,
}

/// All pages, with their subpages, in order.
const PAGES: [(u8, u8); 5] = [
    (page::ERROR_RECOVERY, 0),
    (page::CACHING, 0),
    (page::CONTROL, 0),
    (page::CONTROL, 1),
    (page::EXCEPTIONS, 0),
];
/// All subpages.
const ALL: u8 = 0xff;

/// MODE SENSE.
pub(super) fn sense(request: &Request, command: ModeSense, out: &mut ReplyBuf) -> Outcome {
    let unit = &request.unit;
    let values = match command.control {
        0 => Values::Current,
        1 => Values::Changeable,
        2 => Values::Default,
        _ => return Err(illegal(Asc::SAVING_NOT_SUPPORTED)),
    };
    let is_meant = |(code, subpage): &&(u8, u8)| {
        (command.page == page::ALL || command.page == *code)
            && (command.subpage == ALL || command.subpage == *subpage)
    };
    if PAGES.iter().find(is_meant).is_none() {
        // The field in error: the page code or, of a supported page, the subpage code.
        let known =
            command.page == page::ALL || PAGES.iter().any(|(code, _)| *code == command.page);
        return Err(bad_field(if known { 3 } else { 2 }));
    }
    let header = Header {
        write_protected: unit.is_write_protected(),
        dpo_fua: true,
        long_lba: command.long_lba && !command.no_block_descriptors,
        block: (!command.no_block_descriptors)
            .then(|| BlockDescriptor { count: unit.blocks(), block: unit.identity.block }),
    };
    let first = out.len();
    let start = header.put(command.width, out.vec());
    for (code, subpage) in PAGES.iter().filter(is_meant) {
        put(unit, (*code, *subpage), values, out.vec());
    }
    mode::end(command.width, start, out.vec());
    Ok(answer(out, first, command.allocation.into()))
}

/// Appends a page; of what can be changed the bits that are set can.
fn put(unit: &Unit, (code, subpage): (u8, u8), values: Values, out: &mut Vec<u8>) {
    match (code, subpage) {
        (page::ERROR_RECOVERY, _) => ErrorRecovery::default().put(out),
        (page::CACHING, _) => {
            let write_cache = match values {
                Values::Current => unit.write_cache(),
                Values::Changeable => true,
                Values::Default => unit.settings().write_cache,
            };
            Caching { write_cache, ..Caching::default() }.put(out);
        }
        (page::CONTROL, 0) => control(unit, values).put(out),
        (page::CONTROL, _) => ControlExtension::default().put(out),
        _ => Exceptions::default().put(out),
    }
}

fn control(unit: &Unit, values: Values) -> Control {
    match values {
        Values::Changeable => {
            Control { descriptor_sense: true, write_protect: true, ..Control::default() }
        }
        Values::Current | Values::Default => {
            let now = values == Values::Current;
            Control {
                // Commands are carried out in any order.
                queue_algorithm: 1,
                task_aborted_status: true,
                descriptor_sense: now && unit.mode.descriptor_sense.load(Ordering::Acquire),
                write_protect: now && unit.mode.write_protect.load(Ordering::Acquire),
                ..Control::default()
            }
        }
    }
}

/// MODE SELECT: all pages are checked before one is changed.
pub(super) fn select(request: &Request, command: ModeSelect, data: &[u8]) -> Outcome {
    let unit = &request.unit;
    if !command.page_format {
        return Err(bad_field(1));
    }
    if command.save {
        return Err(bad_field(1));
    }
    if data.len() < usize::from(command.list_length) {
        return Err(ScsiError::ListLength.into());
    }
    if data.is_empty() {
        return Ok(Done::good(0));
    }
    let (header, at) = Header::parse(command.width, data)?;
    check_descriptor(unit, &header)?;
    let pages = mode::pages(data, at)?;
    for page in &pages {
        check_page(unit, page)?;
    }
    let (mut has_changed, had_cache) = (false, unit.write_cache());
    for page in &pages {
        has_changed |= apply(unit, page);
    }
    if has_changed {
        unit.establish_all(Asc::MODE_PARAMETERS_CHANGED, Some(&request.nexus));
    }
    let mut done = Done::good(data.len() as u64);
    if had_cache && !unit.write_cache() {
        // What is in the cache goes to disk before it counts as off (SBC-4 §4.15.4).
        let written = request.nexus.written();
        done.flush = unit.flush(FlushSite::LunSync, written);
        done.settles = Some((Arc::clone(&request.nexus), written));
    }
    Ok(done)
}

/// A block descriptor may say what is so already, or nothing.
fn check_descriptor(unit: &Unit, header: &Header) -> Result<(), Fail> {
    let Some(BlockDescriptor { count, block }) = header.block else { return Ok(()) };
    let short = u64::from(u32::try_from(unit.blocks()).unwrap_or(u32::MAX));
    let counts = [0, short, unit.blocks(), u64::from(u32::MAX)];
    if block != unit.identity.block || !counts.contains(&count) {
        return Err(ScsiError::list(4, 7).into());
    }
    Ok(())
}

fn check_page(unit: &Unit, sent: &RawPage<'_>) -> Result<(), Fail> {
    let code = (sent.code, sent.subpage);
    if !PAGES.contains(&code) {
        return Err(ScsiError::list(sent.at, 5).into());
    }
    let (mut current, mut changeable) = (Vec::new(), Vec::new());
    put(unit, code, Values::Current, &mut current);
    put(unit, code, Values::Changeable, &mut changeable);
    Ok(mode::check_change(sent, &current, &changeable)?)
}

/// Makes a page's values hold; whether anything was different before.
fn apply(unit: &Unit, sent: &RawPage<'_>) -> bool {
    let set =
        |place: &std::sync::atomic::AtomicBool, value| place.swap(value, Ordering::AcqRel) != value;
    match (sent.code, sent.subpage) {
        (page::CONTROL, 0) => {
            let control = Control::parse(sent.bytes);
            // Both are set, whether or not the first was different.
            set(&unit.mode.descriptor_sense, control.descriptor_sense)
                | set(&unit.mode.write_protect, control.write_protect)
        }
        (page::CACHING, _) => set(&unit.mode.write_cache, Caching::parse(sent.bytes).write_cache),
        _ => false,
    }
}
