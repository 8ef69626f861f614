//! Messages of SSH.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::ssh_message(data);
});
