//! The SMBIOS table: bounded lists, and texts of one line.

#![no_main]

use host_hardware::smbios::parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let table = parse(data, true);
    assert!(table.processors.len() + table.slots.len() + table.memory.len() <= 3 * 1_024);
    let text = serde_json::to_string(&table).expect("a table is JSON");
    // A backslash of a text is two in JSON.
    let text = text.replace(r"\\", "");
    assert!(!text.contains(r"\n") && !text.contains(r"\u0000"));
});
