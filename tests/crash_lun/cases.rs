//! What is done to a unit before the power goes; what must be there then, and the flush without
//! which it is not.

use e2e::iscsi::{BLOCK, Initiator, blocks, io, reserve, synchronize};
use sim::forget::ForgetFs;
use wire::scsi::Cdb;
use wire::scsi::cdb::{Compare, ReserveOut, StartStop, VerifyIo, WriteSame};
use wire::scsi::unmap::{self, Extent};

/// Blocks that each case is about.
const COUNT: u32 = 8;
const BYTES: usize = COUNT as usize * BLOCK;
/// A key that is nothing else in any file.
const KEY: u64 = 0x706c_696d_736f_6c6c;

/// Something that is done to blocks of its own.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The flushes, by the names that `PLIMSOLL_TEST_SKIP_FLUSH` takes.
    pub needs: &'static [&'static str],
    /// Does it from this block on.
    pub act: fn(&mut Initiator, u64),
    /// What must be there once it is acknowledged.
    pub after: After,
}

/// The expected result of a case.
pub enum After {
    /// This byte all over its blocks.
    Filled(u8),
    /// A reservation with [`KEY`].
    Reserved,
    /// The unit that is only made.
    Made,
}

impl After {
    /// What is not as it was acknowledged.
    pub fn lost(&self, image: &ForgetFs, lba: u64) -> Option<String> {
        match self {
            Self::Filled(byte) => {
                let unit = image.look("state/luns/disk.lun").map(|left| left.data);
                let start = lba as usize * BLOCK;
                let there = unit.as_ref().and_then(|data| data.get(start..start + BYTES));
                let Some(there) = there else { return Some("the unit is not there".to_owned()) };
                let other = there.iter().find(|there| *there != byte)?;
                Some(format!("{other:#04x} instead of {byte:#04x}"))
            }
            Self::Reserved => {
                let file = image.look("state/luns/reservations").map(|left| left.data);
                let keeps = |data: Vec<u8>| data.windows(8).any(|bytes| bytes == KEY.to_le_bytes());
                (!file.is_some_and(keeps)).then(|| "there is no such key".to_owned())
            }
            Self::Made => match image.look("state/luns/other.lun") {
                Some(left) if left.data.len() == 1 << 20 => None,
                left => Some(format!("{:?} bytes", left.map(|left| left.data.len()))),
            },
        }
    }
}

fn write(initiator: &mut Initiator, lba: u64, byte: u8, fua: bool) {
    initiator.good(&Cdb::Write(io(lba, COUNT, fua)), &[byte; BYTES], 0);
}

/// Does something while the write cache is off.
fn uncached(initiator: &mut Initiator, act: impl FnOnce(&mut Initiator)) {
    initiator.set_write_cache(false);
    act(initiator);
    initiator.set_write_cache(true);
}

fn same(initiator: &mut Initiator, lba: u64, block: &[u8], unmap: bool) {
    let blocks = blocks(lba, COUNT);
    let no_data = block.is_empty();
    initiator.good(&Cdb::WriteSame(WriteSame { blocks, unmap, no_data }), block, 0);
}

/// All of them.
pub static CASES: [Case; 15] = [
    Case {
        name: "write-fua",
        needs: &["lun-fua"],
        act: |i, lba| write(i, lba, 0x11, true),
        after: After::Filled(0x11),
    },
    Case {
        name: "write-and-verify",
        needs: &["lun-fua"],
        act: |i, lba| {
            let (blocks, no_cache, compare) = (blocks(lba, COUNT), false, Compare::Each);
            let command = VerifyIo { blocks, no_cache, compare };
            i.good(&Cdb::WriteAndVerify(command), &[0x12; BYTES], 0);
        },
        after: After::Filled(0x12),
    },
    Case {
        name: "compare-and-write-fua",
        needs: &["lun-fua"],
        act: |i, lba| {
            let both = [[0; BYTES], [0x13; BYTES]].concat();
            i.good(&Cdb::CompareAndWrite(io(lba, COUNT, true)), &both, 0);
        },
        after: After::Filled(0x13),
    },
    Case {
        name: "orwrite-fua",
        needs: &["lun-fua"],
        act: |i, lba| {
            i.good(&Cdb::OrWrite(io(lba, COUNT, true)), &[0x14; BYTES], 0);
        },
        after: After::Filled(0x14),
    },
    Case {
        name: "write-without-cache",
        needs: &["lun-fua"],
        act: |i, lba| uncached(i, |i| write(i, lba, 0x15, false)),
        after: After::Filled(0x15),
    },
    Case {
        name: "write-same-without-cache",
        needs: &["lun-fua"],
        act: |i, lba| uncached(i, |i| same(i, lba, &[0x16; BLOCK], false)),
        after: After::Filled(0x16),
    },
    Case {
        name: "zeros-without-cache",
        needs: &["lun-change"],
        act: |i, lba| {
            write(i, lba, 0x17, true);
            uncached(i, |i| same(i, lba, &[], false));
        },
        after: After::Filled(0),
    },
    Case {
        name: "write-same-that-unmaps-without-cache",
        needs: &["lun-change"],
        act: |i, lba| {
            write(i, lba, 0x18, true);
            uncached(i, |i| same(i, lba, &[0; BLOCK], true));
        },
        after: After::Filled(0),
    },
    Case {
        name: "unmap-without-cache",
        needs: &["lun-change"],
        act: |i, lba| {
            write(i, lba, 0x19, true);
            let mut list = Vec::new();
            unmap::put(&[Extent { lba, count: COUNT }], &mut list);
            let command = Cdb::Unmap { group: 0, list_length: list.len() as u16 };
            uncached(i, |i| drop(i.good(&command, &list, 0)));
        },
        after: After::Filled(0),
    },
    Case {
        name: "synchronize-cache",
        needs: &["lun-sync"],
        act: |i, lba| {
            write(i, lba, 0x1a, false);
            i.good(&synchronize(), &[], 0);
        },
        after: After::Filled(0x1a),
    },
    Case {
        name: "unmap-before-synchronize-cache",
        needs: &["lun-sync"],
        act: |i, lba| {
            write(i, lba, 0x1b, true);
            same(i, lba, &[], true);
            i.good(&synchronize(), &[], 0);
        },
        after: After::Filled(0),
    },
    Case {
        name: "cache-switched-off",
        needs: &["lun-sync"],
        act: |i, lba| {
            write(i, lba, 0x1c, false);
            uncached(i, |_| {});
        },
        after: After::Filled(0x1c),
    },
    Case {
        name: "stopped",
        needs: &["lun-sync"],
        act: |i, lba| {
            write(i, lba, 0x1d, false);
            i.good(&Cdb::StartStop(STOP), &[], 0);
        },
        after: After::Filled(0x1d),
    },
    Case {
        name: "reservation",
        needs: &["journal"],
        act: |i, _| {
            let (register, list) = reserve(ReserveOut::Register, 0, 0, KEY, true);
            i.good(&register, &list, 0);
            let (reserve, list) = reserve(ReserveOut::Reserve, 1, KEY, 0, true);
            i.good(&reserve, &list, 0);
        },
        after: After::Reserved,
    },
    Case { name: "made", needs: &["lun-name"], act: |_, _| {}, after: After::Made },
];

const STOP: StartStop = StartStop {
    immediate: false,
    modifier: 0,
    power_condition: 0,
    no_flush: false,
    load_eject: false,
    start: false,
};
