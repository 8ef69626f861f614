//! Security descriptors.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::smb_descriptor(data);
});
