//! SPNEGO and NTLM.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::smb_sign_in(data);
});
