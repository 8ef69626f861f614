//! Frames and greetings of the link emulator.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::bridge(data);
});
