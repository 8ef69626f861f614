//! The declarations fit the jobs.

use super::*;
use crate::job::Job;

#[test]
fn jobs_of_the_program_are_always_there() {
    let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, FIXED);
    for (name, text) in BUILT_IN {
        assert!(text.len() <= LAB_JOB_BYTES_MAX, "{name}");
        assert!(Job::parse(name, text, &[]).unwrap().schedule.len() <= LAB_STEPS_MAX, "{name}");
    }
}

#[test]
fn a_job_is_called_as_it_is_filed() {
    let (_, text) = BUILT_IN[0];
    assert_eq!(Job::named("mine", text).unwrap().name, "mine");
    assert_eq!(Job::named("5.1", text).unwrap().name, "5.1");
}
