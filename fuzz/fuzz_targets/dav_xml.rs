//! Bodies of WebDAV: XML in, and out again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::dav_xml(data);
});
