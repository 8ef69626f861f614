//! Programs with as many open files as a process may have, and with one more.

use super::*;
use lab_program::wml::read;

const TEXT: &str = "
define fileset name=s,path=/x,size=4k,entries=10,dirwidth=10,prealloc=100
define process name=p,instances=3 {
  thread name=t,instances=2 {
    flowop read name=r,filesetname=s,iosize=4k,opennext
  }
}
";

#[test]
fn a_program_that_needs_one_descriptor_more_than_permitted_is_refused() {
    let program = read("p.f", TEXT, &[]).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(program, 5, 0, 1).expect("a plan");
    let needed = 6 * (128 + PARENTS_MAX as u64) + OTHERS;
    permitted(&plan, needed).expect("as many as are needed");
    let error = permitted(&plan, needed - 1).expect_err("one fewer");
    assert_eq!(
        error.to_string(),
        "the program has up to 920 files open at once, and a process of this machine may have 919: \
         raise that limit (ulimit -n), use fewer threads, or agents"
    );
}
