//! What of a process's memory is a stack.

use super::highest_stack;

/// A mapping as smaps(5) has it.
fn mapping(range: &str, rights: &str, name: &str, kib: u64) -> String {
    format!("{range} {rights} 00000000 00:00 0 {name}\nSize: 4 kB\nRss: {kib} kB\n")
}

#[test]
fn stacks_have_small_guards_below_them() {
    let thread = [
        mapping("7f0000000000-7f0000001000", "---p", "", 0),
        mapping("7f0000001000-7f0000201000", "rw-p", "", 360),
    ];
    let first = mapping("7ffc00000000-7ffc00021000", "rw-p", "[stack]", 40);
    assert_eq!(highest_stack(&[&thread.concat(), &first[..]].concat()), 360 << 10);
    assert_eq!(highest_stack(&first), 40 << 10);
    // Two arenas of malloc: behind what the first does not use, the second uses as much as a stack.
    let arenas = [
        mapping("7f1000000000-7f1000400000", "rw-p", "", 4096),
        mapping("7f1000400000-7f1004000000", "---p", "", 0),
        mapping("7f1004000000-7f1004200000", "rw-p", "", 2008),
        mapping("7f1004200000-7f1008000000", "---p", "", 0),
    ];
    assert_eq!(highest_stack(&[thread.concat(), arenas.concat()].concat()), 360 << 10);
}
