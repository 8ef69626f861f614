//! A head of HTTP/1.1.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::http_head(data);
});
