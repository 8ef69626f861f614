//! NFSv3 results, as a client reads them; the first word is the procedure.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::nfs3_res(data);
});
