//! MOUNT and port mapper messages; the first word selects one.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::mount3_any(data);
});
