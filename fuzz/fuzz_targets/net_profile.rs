//! Network profiles in the language of uperf: an error or a profile.

#![no_main]

use lab_net::read::{Variables, read};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let variables = Variables { local_hosts: true, ..Variables::default() };
        let _ = read("fuzz.xml", text, &variables);
    }
});
