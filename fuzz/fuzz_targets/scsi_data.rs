//! What commands of SCSI carry.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::scsi_data(data);
});
