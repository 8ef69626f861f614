//! A body of HTTP/1.1 in chunks.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::http_chunks(data);
});
