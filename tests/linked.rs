//! What the program is linked with: libraries that it uses only if they are there (those of RDMA
//! among others) are looked for at run time, so that it starts without them.

use std::process::Command;

use e2e::process::succeed;
use e2e::server::binary;
use e2e::{has, skip};

/// The C library and its parts; the loader's name begins with `ld-linux`.
const LIBRARIES: [&str; 3] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1"];

#[test]
fn the_program_needs_no_library_but_the_c_library() {
    if !has("objdump") {
        skip!("linked", "not installed: objdump");
    }
    let said = succeed(Command::new("objdump").arg("-p").arg(binary()));
    let said = String::from_utf8_lossy(&said);
    let needed: Vec<_> =
        said.lines().filter_map(|line| line.trim().strip_prefix("NEEDED")).map(str::trim).collect();
    assert!(needed.contains(&"libc.so.6"), "{said}");
    for library in needed {
        assert!(LIBRARIES.contains(&library) || library.starts_with("ld-linux"), "{library}");
    }
}
