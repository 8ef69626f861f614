//! NFSv3 arguments; the first word is the procedure.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::nfs3_args(data);
});
