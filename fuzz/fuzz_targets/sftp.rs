//! A stream of SFTP packets, of either direction.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::sftp_packets(data);
});
