//! Create contexts of SMB.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::smb_contexts(data);
});
