//! Tests of what a command may move.

use wire::iscsi::command::{CdbParts, TaskAttribute};
use wire::iscsi::{InitiatorSn, RESERVED_TAG};

use super::*;

#[test]
fn a_command_without_the_r_bit_reads_nothing() {
    let command = |read, write| ScsiCommand {
        immediate: false,
        is_final: true,
        read,
        write,
        attribute: TaskAttribute::SIMPLE,
        lun: 0,
        itt: RESERVED_TAG,
        expected_length: 4096,
        read_length: None,
        sn: InitiatorSn::default(),
        cdb: CdbParts::from(&[0; 16][..]),
        data: &[],
    };
    for (read, write, inward) in
        [(true, false, 4096), (false, true, 0), (true, true, 4096), (false, false, 0)]
    {
        let command = command(read, write);
        assert_eq!(limit_of(&command, Data::In(1 << 20)), inward, "R {read} W {write}");
        // The expected length, also for a command that takes no data.
        for data in [Data::Out(1 << 20), Data::None] {
            assert_eq!(limit_of(&command, data), 4096, "R {read} W {write}, {data:?}");
        }
    }
}
