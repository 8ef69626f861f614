//! Targets of SCSI: commands, and the data that they carry.

use crate::scsi::capacity::{Capacity, lba_status, put_lba_status};
use crate::scsi::cdb::{Cdb, ReserveOut, Width};
use crate::scsi::copy::{Copy, CopyStatus, OperatingParameters};
use crate::scsi::inquiry::Inquiry;
use crate::scsi::sense::{Format, Sense};
use crate::scsi::transport_id::TransportId;
use crate::scsi::{lun, mode, opcodes, ports, reserve, unmap, vpd};

/// A command: it means the same once more, and its row is the one that it was checked against.
pub fn scsi_cdb(data: &[u8]) -> bool {
    let Ok(cdb) = Cdb::decode(data) else {
        assert!(opcodes::find(data).is_err() || !data.is_empty());
        return false;
    };
    let again = cdb.encode().expect("a form");
    assert_eq!(Cdb::decode(again.bytes()), Ok(cdb));
    assert_eq!(cdb.command(), opcodes::find(data).ok());
    assert!(again.bytes().len() <= data.len());
    let _ = cdb.data(512);
    true
}

/// What `decode` takes must mean the same after `put`.
macro_rules! same {
    ($bytes:expr, $decode:expr, $put:expr) => {{
        match $decode($bytes) {
            Ok(first) => {
                let mut again = Vec::new();
                $put(&first, &mut again);
                assert_eq!($decode(&again).as_ref(), Ok(&first));
                true
            }
            Err(_) => false,
        }
    }};
}

/// Actions of PERSISTENT RESERVE OUT that have parameters of their own.
const ACTIONS: [ReserveOut; 3] =
    [ReserveOut::Register, ReserveOut::Preempt, ReserveOut::RegisterAndMove];

/// The data of a command, which the first byte selects.
pub fn scsi_data(data: &[u8]) -> bool {
    let Some((which, b)) = data.split_first() else { return false };
    match which {
        0 => same!(b, Sense::decode, |s: &Sense, out| s.put(Format::Descriptor, out)),
        1 => same!(b, Inquiry::decode, Inquiry::put),
        2 => same!(b, vpd::identification, |d: &Vec<_>, out| vpd::put_identification(d, out)),
        3 => same!(b, vpd::Extended::decode, vpd::Extended::put),
        4 => same!(b, vpd::BlockLimits::decode, vpd::BlockLimits::put),
        5 => same!(b, vpd::Characteristics::decode, vpd::Characteristics::put),
        6 => same!(b, vpd::Provisioning::decode, vpd::Provisioning::put),
        7 => vpd::supported(b).is_ok() || vpd::serial(b).is_ok(),
        8 => same!(b, Capacity::decode_16, Capacity::put_16),
        9 => Capacity::decode_10(b).is_ok(),
        10 => same!(b, lba_status, |list: &Vec<_>, out| put_lba_status(list, out)),
        11 => same!(b, unmap::parse, |list: &Vec<_>, out| unmap::put(list, out)),
        12..=14 => {
            let action = ACTIONS[usize::from(which - 12)];
            let parse = |bytes: &[u8]| reserve::Parameters::parse(action, bytes);
            same!(b, parse, reserve::Parameters::put)
        }
        15 => same!(b, reserve::keys, |(g, keys): &(u32, Vec<u64>), out| {
            reserve::put_keys(*g, keys, out);
        }),
        16 => same!(b, reserve::reservation, |(g, held): &(u32, Option<_>), out| {
            reserve::put_reservation(*g, *held, out);
        }),
        17 => same!(b, reserve::full_status, |(g, list): &(u32, Vec<_>), out| {
            reserve::put_full_status(*g, list, out);
        }),
        18 => reserve::Capabilities::decode(b).is_ok(),
        19 => {
            let parse = |bytes: &[u8]| TransportId::parse(bytes, 0).map(|(id, _)| id);
            same!(b, parse, TransportId::put)
        }
        20 => same!(b, Copy::parse, Copy::put),
        21 => OperatingParameters::decode(b).is_ok(),
        22 => same!(b, CopyStatus::decode, CopyStatus::put),
        23 => {
            let decode = |bytes: &[u8]| ports::port_groups(bytes, false);
            same!(b, decode, |list: &Vec<_>, out| ports::put_port_groups(list, None, out))
        }
        24 => ports::port_groups(b, true).is_ok(),
        25 => ports::all_commands(b).is_ok(),
        26 => ports::one_command(b).is_ok(),
        27 => lun::report(b).is_ok(),
        28 => mode_list(Width::Six, b),
        29 => mode_list(Width::Ten, b),
        _ => false,
    }
}

/// A list of mode pages: they lie within it, one after another.
fn mode_list(width: Width, list: &[u8]) -> bool {
    let Ok((header, start)) = mode::Header::parse(width, list) else { return false };
    let mut again = Vec::new();
    header.put(width, &mut again);
    assert_eq!(again.len(), start);
    assert_eq!(mode::Header::parse(width, &again), Ok((header, start)));
    let Ok(pages) = mode::pages(list, start) else { return false };
    let mut at = start;
    for page in &pages {
        assert_eq!(page.at, at);
        at += page.bytes.len();
        let zeros = vec![0; page.bytes.len()];
        let _ = mode::check_change(page, &zeros, &zeros);
        let _ = (mode::Caching::parse(page.bytes), mode::Control::parse(page.bytes));
        let _ = (mode::ErrorRecovery::parse(page.bytes), mode::Exceptions::parse(page.bytes));
        let _ = mode::ControlExtension::parse(page.bytes);
    }
    at == list.len()
}
