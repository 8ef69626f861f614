//! What a peer of an SSH connection sends first.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::ssh_transport(data);
});
