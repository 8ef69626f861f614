//! Requests to the privileged helper: an error or a request that is within its limits and survives
//! being written.

#![no_main]

use host_helper::request::Request;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(request) = Request::parse(data) {
        let bytes = serde_json::to_vec(&request).expect("a request is JSON");
        assert_eq!(Request::parse(&bytes), Ok(request));
    }
});
