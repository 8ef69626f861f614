//! Every job that comes with the program is valid; settings and mistakes are understood.

use super::*;

#[test]
fn every_built_in_job_is_valid_and_states_its_purpose() {
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
fn mistakes_are_one_line() {
    let unknown = Job::load("iops-4k", &["bogus=1".to_owned()]).unwrap_err().to_string();
    assert!(unknown.contains("unknown field `bogus`, expected"), "{unknown}");
    let broken = Job::parse("x", "title = \"a\"\nblock =\n", &[]).unwrap_err();
    let kind = crate::transfer::Plan::parse("x", "title = 3", &[]).unwrap_err();
    for error in [unknown, broken.to_string(), broken.without_name(), kind.to_string()] {
        assert_eq!(base::text::visible(&error), error, "one line, nothing to escape");
    }
    assert!(broken.to_string().ends_with("(line 2)"), "{broken}");
}

#[test]
fn titles_name_the_block_that_is_used() {
    let title = |name: &str, set: &[&str]| {
        let set: Vec<_> = set.iter().map(|s| (*s).to_owned()).collect();
        let job = Job::load(name, &set).unwrap();
        (job.title, job.answers)
    };
    let (title_64k, answers) = title("iops-4k", &["block=64k"]);
    assert_eq!(title_64k, "NFSv3 max operations, 64 KB reads");
    assert_eq!(answers, "How many 64 KB reads from memory can the server answer per second?");
    assert_eq!(title("iops-1b", &["block=4k"]).0, "NFSv3 max operations, 4 KB reads");
    assert_eq!(title("iops-8k", &["block=512"]).0, "NFSv3 max operations, 512-byte reads");
    assert_eq!(title("syncwrite-4k", &["block=1m"]).0, "NFSv3 1 MB synchronous writes");
    assert_eq!(title("iops-4k", &["block=64k", "title='Mine'"]).0, "Mine");
    // Each title that names a size names its job's own.
    for (name, text) in BUILT_IN {
        let job = Job::parse(name, text, &[]).unwrap();
        let own = size_text(job.block);
        let names = [" KB", "-byte"].iter().any(|unit| job.title.contains(unit));
        assert!(!names || job.title.contains(&own), "{name}: {}", job.title);
    }
    let mut job = Job::load("iops-4k", &[]).unwrap();
    job.set_block(64 << 10);
    job.set_block(4 << 10);
    assert_eq!(job.title, "NFSv3 max operations, 4 KB reads");
}

#[test]
fn steps_fit_the_clients_there_are() {
    let job = Job::load("iops-4k", &["schedule=[[1,1],[2,1],[8,1],[8,4]]".to_owned()]).unwrap();
    assert_eq!(job.steps(2), [(1, 1), (2, 1), (2, 4)]);
}
