//! Lines of the test service.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::echo(data);
});
