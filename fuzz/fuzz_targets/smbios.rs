//! The SMBIOS table: bounded lists, and texts of one line.

#![no_main]

use host_hardware::smbios::parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let table = parse(data, true);
    assert!(table.processors.len() + table.slots.len() + table.memory.len() <= 3 * 1_024);
    let text = serde_json::to_string(&table).expect("a table is JSON");
    assert!(!text.contains("\\n") && !text.contains("\\u0000"));
});
