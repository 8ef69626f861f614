//! Headers of RPC calls and replies.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::rpc_call(data);
});
