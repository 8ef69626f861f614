//! Headers of WebDAV: `If` and where URLs lead.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::dav_if(data);
});
