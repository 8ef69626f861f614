//! Output of the commands of ZFS: text, JSON and lines with tabulators. Whatever they print, a pool
//! has no more devices than the limit.

#![no_main]

use host_pools::zfs::{LEAVES_MAX, POOLS_MAX, json, table, text};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let lossy = String::from_utf8_lossy(data);
    let of_text = text::pools(&lossy);
    let of_json = json::pools(data).unwrap_or_default();
    for pools in [of_text, of_json] {
        assert!(pools.len() <= POOLS_MAX);
        assert!(pools.iter().all(|pool| pool.leaves.len() <= LEAVES_MAX));
    }
    let _ = table::properties(&lossy);
});
