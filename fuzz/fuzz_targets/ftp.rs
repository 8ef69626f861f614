//! FTP: commands, replies, facts and text; the first word selects one.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::ftp_any(data);
});
