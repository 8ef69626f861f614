//! Keys, certificates and lines of authorized keys.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::ssh_key(data);
});
