//! Headers and chunk lists of RPC over RDMA.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::rpcrdma_header(data);
});
