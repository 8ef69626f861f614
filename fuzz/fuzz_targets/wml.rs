//! Programs in the language of Filebench: an error or a program.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = lab_program::wml::read("fuzz.f", text, &[]);
    }
});
