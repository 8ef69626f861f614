//! Scripts: until the first error, with its line.

use super::fake::{Fake, shell};
use crate::cli::script::{Stopped, run};

fn script(text: &str, echo: bool) -> (String, Result<(), Stopped>, Fake) {
    let (mut shell, fake, _) = shell();
    let mut said = String::new();
    let done =
        run(&mut shell, text.lines().map(str::to_owned), echo, &mut |text| said.push_str(text));
    (said, done, fake)
}

#[test]
fn a_script_stops_at_the_first_error() {
    let text = "# a comment\ncd configuration/services/nfs\nset lease=60\nset lease=9999\ncommit\n";
    let (said, done, fake) = script(text, false);
    assert_eq!(said, "lease = 60s (uncommitted)\n");
    let stopped = done.unwrap_err();
    assert_eq!((stopped.line, stopped.error.exit_code()), (4, 1));
    assert_eq!(fake.0.lock().unwrap().committed.len(), 0);
    let (_, done, _) = script("show\nshwo\n", false);
    let stopped = done.unwrap_err();
    assert_eq!((stopped.line, stopped.error.exit_code()), (2, 2));
}

#[test]
fn a_script_that_forgets_to_commit_fails() {
    let (_, done, _) = script("cd configuration/services/nfs\nset lease=60\n", false);
    let stopped = done.unwrap_err();
    assert_eq!(stopped.error.to_string(), "1 change is not committed");
    assert_eq!(stopped.line, 2);
    assert_eq!(script("cd configuration/services/nfs\nset lease=60\nabort\n", false).1, Ok(()));
}

#[test]
fn commands_continue_over_lines_and_are_echoed() {
    let text = "configuration users create mia \\\n  full_name='Mia\nM.'\n\nexit\nnonsense\n";
    let (said, done, fake) = script(text, true);
    assert_eq!(done, Ok(()));
    assert_eq!(said, "> configuration users create mia \\\n  full_name='Mia\nM.'\n> exit\n");
    let held = fake.0.lock().unwrap();
    assert_eq!(held.committed[0]["changes"][0]["properties"]["full_name"], "Mia\nM.");
    let (said, ..) = script("configuration users create mia password=abc\n", true);
    assert_eq!(said, "> configuration users create mia password=(set)\n");
}

#[test]
fn quotes_left_open_are_found_where_they_begin() {
    let (_, done, _) = script("show\nset a='x\nshow\n", false);
    assert_eq!(done.unwrap_err().line, 2);
}
