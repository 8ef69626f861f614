//! NFSv4 compounds, callbacks and their results; the first word selects which.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::nfs4_compound(data);
});
