//! The schema files are sound, and titles read as sentences.

use std::collections::HashSet;

use super::*;

#[test]
fn the_schema_is_sound() {
    let schema = load().expect("schema/ can be read");
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema"));
    let paths = files.expect("the folder").map(|file| file.expect("a file").path());
    // A folder in it has those of services that are there for tests.
    let others = paths.filter(|path| path.is_file() && !path.ends_with("breakdowns.toml"));
    assert_eq!(others.count(), schema.groups().len(), "a file that nobody reads");
    for protocol in Protocol::ALL {
        let group = schema.group(protocol.id());
        assert!(group.is_some_and(|group| !group.operations.is_empty()), "{protocol:?}");
    }
    let mut seen = HashSet::new();
    for group in schema.groups() {
        assert!(!group.name.is_empty() && !group.sentence.is_empty());
        for statistic in &group.statistics {
            let id = format!("{}.{}", group.group, statistic.id);
            assert!(id.parse::<StatId>().is_ok(), "{id}");
            assert!(!statistic.sentence.is_empty() && !statistic.unit.is_empty(), "{id}");
            let rate = statistic.unit.ends_with("/s");
            assert_eq!(rate, statistic.kind == Kind::Counter, "{id}: unit {}", statistic.unit);
            for breakdown in &statistic.breakdowns {
                assert!(schema.breakdown(breakdown).is_some(), "{id} by {breakdown}");
            }
            assert!(seen.insert(id), "twice");
        }
    }
    for breakdown in &schema.breakdowns {
        assert_eq!(breakdown.filter.matches("{}").count(), 1, "{}", breakdown.id);
        assert_eq!(breakdown.unit.is_some(), breakdown.kind == Shape::Range, "{}", breakdown.id);
    }
}

fn title(id: &str) -> String {
    let stat: StatId = id.parse().expect("an id");
    schema().check(&stat).expect("a statistic");
    schema().title(&stat, |_, value| value.to_owned())
}

#[test]
fn titles_are_sentences() {
    assert_eq!(title("nfs3.ops"), "NFSv3 operations per second");
    assert_eq!(title("all.bytes[client]"), "Total bytes per second broken down by client");
    assert_eq!(
        title("nfs3.ops[op=read][client=10.0.0.7][file]"),
        "NFSv3 operations per second of type read for client 10.0.0.7 broken down by file"
    );
    assert_eq!(
        title("nfs3.bytes[latency=1000000-2000000][user]"),
        "NFSv3 bytes per second with a latency of 1 ms to 2 ms broken down by user"
    );
    assert_eq!(title("cpu.utilization[mode]"), "CPU percent utilization broken down by CPU mode");
    assert_eq!(
        title("nic.kilobytes[direction]"),
        "Network device kilobytes per second broken down by direction"
    );
}

#[test]
fn a_group_is_the_sum_of_its_members() {
    let protocols: Vec<_> = schema().protocols("nfs").collect();
    assert_eq!(protocols, [Protocol::Nfs3, Protocol::Nfs4]);
    assert_eq!(title("nfs.ops[client]"), "NFS operations per second broken down by client");
    assert_eq!(
        title("nfs.ops[protocol=nfs4][op]"),
        "NFS operations per second over nfs4 broken down by type of operation"
    );
    let check = |id: &str| schema().check(&id.parse().expect("an id")).map(|_| ());
    // Of either version; of none; what only members have.
    assert!(check("nfs.ops[op=readdirplus][client]").is_ok());
    assert!(check("nfs.ops[op=open][client]").is_ok());
    assert!(check("nfs.ops[op=opeen]").is_err() && check("nfs.ops[protocol=nfs5]").is_err());
    assert!(check("nfs3.ops[protocol]").is_err());
    // Of all that move data.
    assert_eq!(schema().protocols("all").count(), 8);
    assert!(check("all.ops[op=retr][client]").is_ok() && check("all.bytes[protocol=ftp]").is_ok());
}

#[test]
fn what_does_not_exist_is_named_with_what_does() {
    let error = |id: &str| schema().check(&id.parse().expect("an id")).expect_err(id).to_string();
    assert!(error("nfs3.op").contains("nfs3.ops"));
    assert!(error("nfs3.ops[clent]").contains("did you mean client"));
    assert!(error("cpu.utilization[file]").contains("`file`"));
    assert!(error("nfs3.ops[latency=5]").contains("LOW-HIGH"));
}

#[test]
fn a_sample_is_queried_by_two_dimensions_at_once() {
    let check = |id: &str| schema().check(&id.parse().expect("an id")).map(|_| ());
    assert!(check("bridge.packets[bridge=wan][outcome]").is_ok());
    assert!(check("bridge.packets[way=forth][way=back][outcome]").is_ok());
    let error = check("bridge.packets[bridge=wan][way=forth][outcome]").expect_err("refused");
    assert!(error.to_string().contains("two breakdowns"), "{error}");
    assert!(check("nfs3.ops[client=10.0.0.7][user=0][share=a][op]").is_ok());
    assert_eq!(
        title("bridge.lateness[bridge=wan][lateness]"),
        "Emulated link packets delivered per second for bridge wan broken down by lateness"
    );
}

#[test]
fn an_operation_that_does_not_exist_is_no_silence() {
    let check = |id: &str| schema().check(&id.parse().expect("an id")).map(|_| ());
    assert!(check("nfs3.ops[op=read][client]").is_ok());
    assert!(check("nfs3.ops[status=NFS3_OK]").is_ok());
    let error = check("nfs3.ops[op=raed][client]").expect_err("refused").to_string();
    assert!(error.contains("unknown operation `raed`") && error.contains("read"), "{error}");
    assert!(check("nfs3.ops[status=OK]").is_err());
    // Not of a protocol: the disks' operations are samples.
    assert!(check("io.ops[op=read]").is_ok());
}

#[test]
fn a_number_does_not_stand_for_what_has_a_name() {
    let check = |id: &str| schema().check(&id.parse().expect("an id")).map(|_| ());
    let error = |id: &str| check(id).expect_err(id).to_string();
    assert!(error("nfs3.ops[op=6]").contains("unknown operation `6`; did you mean read?"));
    let status = error("nfs3.ops[status=2][client]");
    assert!(status.contains("NFS3ERR_NOENT"), "{status}");
    // Either version has a name for it, and not the same.
    assert!(check("nfs.ops[op=6]").is_err());
    // As names are shown of what has none.
    assert!(check("nfs3.ops[op=200]").is_ok() && check("nfs3.ops[status=4242]").is_ok());
    for value in ["0200", "+200", "300"] {
        assert!(check(&format!("nfs3.ops[op={value}]")).is_err(), "{value}");
    }
}
