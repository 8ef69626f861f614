//! Arbitrary commands and sense data for tests.

use super::cdb::*;
use super::sense::{Asc, Pointer, Sense, SenseKey, Specific};
use crate::arb::{Arb, Gen};

fn u16_of(g: &mut Gen<'_>) -> u16 {
    g.arb::<u32>() as u16
}

fn blocks(g: &mut Gen<'_>, widths: &[Width]) -> Blocks {
    let width = widths[usize::from(g.byte()) % widths.len()];
    let (lba, count): (u64, u32) = (g.arb(), g.arb());
    match width {
        Width::Six => Blocks { width, lba: lba & 0x1f_ffff, count: count % 256 + 1, group: 0 },
        Width::Ten => {
            Blocks { width, lba: lba >> 32, count: count & 0xffff, group: g.byte() & 0x3f }
        }
        Width::Twelve => Blocks { width, lba: lba >> 32, count, group: g.byte() & 0x3f },
        Width::Sixteen | Width::ThirtyTwo => Blocks { width, lba, count, group: g.byte() & 0x3f },
    }
}

use Width::{Six, Sixteen, Ten, ThirtyTwo, Twelve};

fn io(g: &mut Gen<'_>, widths: &[Width]) -> Io {
    let blocks = blocks(g, widths);
    let has_flags = blocks.width != Six;
    Io { blocks, no_cache: has_flags && g.arb(), force_unit_access: has_flags && g.arb() }
}

fn verify(g: &mut Gen<'_>, compares: &[Compare]) -> VerifyIo {
    let compare = compares[usize::from(g.byte()) % compares.len()];
    VerifyIo { blocks: blocks(g, &[Ten, Twelve, Sixteen, ThirtyTwo]), no_cache: g.arb(), compare }
}

impl Arb<'_> for Cdb {
    fn arb(g: &mut Gen<'_>) -> Self {
        let all = [Six, Ten, Twelve, Sixteen, ThirtyTwo];
        match g.byte() % 20 {
            0 => Self::Read(io(g, &all)),
            1 => Self::Write(io(g, &all)),
            2 => Self::WriteAndVerify(verify(g, &[Compare::Nothing, Compare::Each])),
            3 => {
                let all = [Compare::Nothing, Compare::Each, Compare::AllWithOne];
                Self::Verify(verify(g, &all))
            }
            4 => Self::OrWrite(io(g, &[Sixteen])),
            5 => {
                let mut io = io(g, &[Sixteen]);
                io.blocks.count &= 0xff;
                Self::CompareAndWrite(io)
            }
            6 => Self::PreFetch(CacheRange {
                blocks: blocks(g, &[Ten, Sixteen]),
                immediate: g.arb(),
            }),
            7 => Self::SynchronizeCache(CacheRange {
                blocks: blocks(g, &[Ten, Sixteen]),
                immediate: g.arb(),
            }),
            8 => {
                let blocks = blocks(g, &[Ten, Sixteen, ThirtyTwo]);
                let no_data = blocks.width != Ten && g.arb();
                Self::WriteSame(WriteSame { blocks, unmap: g.arb(), no_data })
            }
            9 => Self::Unmap { group: g.byte() & 0x3f, list_length: u16_of(g) },
            10 => Self::ReadDefectData(ReadDefectData {
                width: Twelve,
                primary: g.arb(),
                grown: g.arb(),
                format: g.byte() & 7,
                index: g.arb(),
                allocation: g.arb(),
            }),
            _ => primary(g),
        }
    }
}

fn primary(g: &mut Gen<'_>) -> Cdb {
    match g.byte() % 22 {
        0 => Cdb::TestUnitReady,
        1 => Cdb::RequestSense { descriptor: g.arb(), allocation: g.byte() },
        2 => Cdb::Inquiry { page: g.arb::<bool>().then(|| g.byte()), allocation: u16_of(g) },
        3 => Cdb::ReportLuns { select: g.byte(), allocation: g.arb() },
        4 => Cdb::ReadCapacity10,
        5 => Cdb::ReadCapacity16 { allocation: g.arb() },
        6 => Cdb::GetLbaStatus { lba: g.arb(), allocation: g.arb() },
        7 | 8 => {
            let width = if g.arb() { Six } else { Ten };
            Cdb::ModeSense(ModeSense {
                width,
                long_lba: width == Ten && g.arb(),
                no_block_descriptors: g.arb(),
                control: g.byte() & 3,
                page: g.byte() & 0x3f,
                subpage: g.byte(),
                allocation: if width == Six { u16_of(g) & 0xff } else { u16_of(g) },
            })
        }
        9 => {
            let width = if g.arb() { Six } else { Ten };
            Cdb::ModeSelect(ModeSelect {
                width,
                page_format: g.arb(),
                save: g.arb(),
                list_length: if width == Six { u16_of(g) & 0xff } else { u16_of(g) },
            })
        }
        10 => Cdb::Reserve6,
        11 => Cdb::Release6,
        12 => Cdb::StartStop(StartStop {
            immediate: g.arb(),
            modifier: g.byte() & 0xf,
            power_condition: g.byte() & 0xf,
            no_flush: g.arb(),
            load_eject: g.arb(),
            start: g.arb(),
        }),
        13 => Cdb::PreventAllow { prevent: g.byte() & 3 },
        _ => with_action(g),
    }
}

fn with_action(g: &mut Gen<'_>) -> Cdb {
    use ReserveIn::*;
    use ReserveOut::*;
    match g.byte() % 7 {
        0 => Cdb::PersistentReserveIn {
            action: [ReadKeys, ReadReservation, ReportCapabilities, ReadFullStatus]
                [usize::from(g.byte() % 4)],
            allocation: u16_of(g),
        },
        1 => Cdb::PersistentReserveOut(PersistentReserveOut {
            action: [
                Register,
                Reserve,
                Release,
                Clear,
                Preempt,
                PreemptAndAbort,
                RegisterAndIgnore,
                RegisterAndMove,
            ][usize::from(g.byte() % 8)],
            scope: g.byte() & 0xf,
            kind: g.byte() & 0xf,
            list_length: g.arb(),
        }),
        2 => Cdb::ExtendedCopy { list_length: g.arb() },
        3 => Cdb::ReceiveCopyResults {
            action: [
                ReceiveCopy::Status,
                ReceiveCopy::Data,
                ReceiveCopy::OperatingParameters,
                ReceiveCopy::FailureDetails,
            ][usize::from(g.byte() % 4)],
            list_id: g.byte(),
            allocation: g.arb(),
        },
        4 => Cdb::ReportTargetPortGroups { format: g.byte() & 1, allocation: g.arb() },
        5 => {
            let (opcode, action) = (g.byte(), u16_of(g));
            let query = match g.byte() % 4 {
                0 => OpcodeQuery::All,
                1 => OpcodeQuery::One(opcode),
                2 => OpcodeQuery::OneAction(opcode, action),
                _ => OpcodeQuery::OneAny(opcode, action),
            };
            Cdb::ReportOpcodes { timeouts: g.arb(), query, allocation: g.arb() }
        }
        _ => Cdb::ReportTmf { extended: g.arb(), allocation: g.arb() },
    }
}

impl Arb<'_> for Sense {
    fn arb(g: &mut Gen<'_>) -> Self {
        let key = SenseKey(g.byte() & 0xf);
        let pointer = Pointer { byte: u16_of(g), bit: g.arb::<bool>().then(|| g.byte() & 7) };
        let specific = g.arb::<bool>().then(|| match key {
            SenseKey::ILLEGAL_REQUEST if g.arb() => Specific::Cdb(pointer),
            SenseKey::ILLEGAL_REQUEST => Specific::List(pointer),
            SenseKey::NO_SENSE | SenseKey::NOT_READY => Specific::Progress(u16_of(g)),
            _ => Specific::Other([g.byte() & 0x7f, g.byte(), g.byte()]),
        });
        Self {
            key,
            asc: Asc(u16_of(g)),
            is_deferred: g.arb(),
            information: g.arb(),
            command_information: g.arb(),
            specific,
        }
    }
}
