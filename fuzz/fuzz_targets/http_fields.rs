//! Fields of HTTP that select: ranges and entity tags; forms.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wire::fuzz::http_fields(data);
});
