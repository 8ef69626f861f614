//! Streams of RPC records: framing, and its agreement with itself on partial input.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::rpc_record(data);
});
