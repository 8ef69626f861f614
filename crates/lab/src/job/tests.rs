//! Every job that comes with the program is well formed; settings and mistakes are understood.

use super::*;

#[test]
fn every_built_in_job_is_well_formed_and_says_what_for() {
    for (name, text) in BUILT_IN {
        let job = Job::parse(name, text, &[]).unwrap();
        assert_eq!(job.name, *name);
        assert!(text.starts_with("# "), "{name} is headed by what it answers");
        assert!(job.answers.len() > 20 && job.expect.len() > 20, "{name}");
    }
    assert!(SUMMARY.iter().all(|name| BUILT_IN.iter().any(|j| j.0 == *name)));
}

#[test]
fn settings_change_values_of_every_kind() {
    let set = ["block=8k", "steady.windows=7", "schedule=[[1,1],[4,2]]", "on_loss=rebase"];
    let job = Job::load("iops-4k", &set.map(str::to_owned)).unwrap();
    assert_eq!((job.block, job.steady.windows, job.on_loss), (8192, 7, LossPolicy::Rebase));
    assert_eq!(job.schedule, [(1, 1), (4, 2)]);
}

#[test]
fn mistakes_are_named() {
    let fail = |name: &str, set: &[&str]| {
        let set: Vec<_> = set.iter().map(|s| (*s).to_owned()).collect();
        Job::load(name, &set).unwrap_err().to_string()
    };
    assert!(fail("nothing", &[]).contains("no job named"));
    assert!(fail("iops-4k", &["blok=1"]).contains("blok"));
    assert!(fail("iops-4k", &["block"]).contains("KEY=VALUE"));
    assert!(fail("iops-4k", &["block=2m"]).contains("1 MiB"));
    assert!(fail("iops-4k", &["schedule=[]"]).contains("schedule"));
}

#[test]
fn steps_fit_the_clients_there_are() {
    let job = Job::load("iops-4k", &["schedule=[[1,1],[2,1],[8,1],[8,4]]".to_owned()]).unwrap();
    assert_eq!(job.steps(2), [(1, 1), (2, 1), (2, 4)]);
}
