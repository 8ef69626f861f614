//! NLM and NSM messages; the first word selects one.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::nlm4_any(data);
});
