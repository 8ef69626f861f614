//! MS-RPC on pipes of SMB.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::smb_rpc(data);
});
