//! A stream of dsync's frames, of either direction.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::dsync_frames(data);
});
