//! PDUs of iSCSI.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::iscsi_pdu(data);
});
