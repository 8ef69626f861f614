//! The life of a lease, at times that are given.

use super::*;

fn lease(address: &str, obtained: u64) -> Lease {
    Lease {
        cidr: address.parse().expect("an address"),
        server: Ipv4Addr::new(10, 0, 0, 1),
        routes: vec![("0.0.0.0/0".parse().expect("a network"), Some(Ipv4Addr::new(10, 0, 0, 1)))],
        dns: Dns { servers: vec![Ipv4Addr::new(10, 0, 0, 1).into()], domains: Vec::new() },
        mtu: Some(1400),
        obtained,
        renew_s: 50,
        rebind_s: 87,
        valid_s: 100,
    }
}

fn begin() -> Holding {
    Holding::begin("02:00:00:00:00:01", 1_000_000_000_000)
}

#[test]
fn a_lease_is_given_renewed_and_lost() {
    let first = begin();
    assert_eq!((first.phase, first.since, first.valid(1_000)), (Phase::Searching, 1_000, None));
    assert!(first.problem(1_001).expect("a problem").contains("no server answers"));
    let bound = first.after(Event::Given(lease("10.0.0.7/24", 1_002)), 1_002);
    assert_eq!((bound.phase, bound.since), (Phase::Bound, 1_002));
    assert_eq!(bound.problem(1_010), None);
    assert_eq!(bound.valid(1_101).expect("valid").left_s(1_101), 1);
    let renewing = bound.after(Event::Renewing, 1_052);
    assert_eq!(renewing.problem(1_053), None, "this is as usual");
    let renewed = renewing.after(Event::Given(lease("10.0.0.7/24", 1_053)), 1_053);
    assert_eq!((renewed.phase, renewed.since), (Phase::Bound, 1_002), "the same address");
    assert_eq!(renewed.lease.as_ref().and_then(Lease::until), Some(1_153));
    let rebinding = renewed.after(Event::Renewing, 1_103).after(Event::Rebinding, 1_140);
    let problem = rebinding.problem(1_143).expect("a problem");
    assert_eq!(problem, "its DHCP server 10.0.0.1 does not answer; the lease ends in 10 s");
    // Its end shows without an event, too.
    assert_eq!(rebinding.valid(1_153), None);
    assert!(rebinding.problem(1_153).is_some_and(|p| p.contains("no address by DHCP")));
    let lost = rebinding.after(Event::Searching, 1_154);
    assert_eq!((lost.phase, lost.lease, lost.since), (Phase::Searching, None, 1_154));
}

#[test]
fn a_clock_that_is_set_neither_ends_nor_prolongs_a_lease() {
    let bound = begin().after(Event::Given(lease("10.0.0.7/24", 1_002)), 1_002);
    for now in [10_000_000, 500] {
        let renewing = bound.after(Event::Renewing, now);
        assert_eq!(renewing.valid(now).map(|lease| lease.left_s(now)), Some(50), "{now}");
        assert_eq!(renewing.since, 1_002, "the same address");
    }
    let rebinding = bound.after(Event::Renewing, 1_052).after(Event::Rebinding, 10_000_000);
    assert_eq!(rebinding.valid(10_000_000).map(|lease| lease.left_s(10_000_000)), Some(13));
    assert_eq!(rebinding.after(Event::Ended, 10_000_013).lease, None);
}

#[test]
fn a_refused_lease_is_gone_and_an_unconfirmed_one_stays() {
    let bound = begin().after(Event::Given(lease("10.0.0.7/24", 1_002)), 1_002);
    let refused = bound.after(Event::Refused, 1_010);
    assert_eq!((refused.phase, &refused.lease, refused.since), (Phase::Searching, &None, 1_010));
    let searching = bound.after(Event::Searching, 1_010);
    assert_eq!(searching.valid(1_010), bound.lease.as_ref());
    assert_eq!(searching.problem(1_010), None);
    let failed = refused.after(Event::Failed("there is no link e0".to_owned()), 1_011);
    let problem = failed.problem(1_011);
    assert_eq!(problem.as_deref(), Some("it has no address by DHCP: there is no link e0"));
    let other = failed.after(Event::Given(lease("10.0.0.8/24", 1_012)), 1_012);
    assert_eq!((other.since, other.failure), (1_012, None));
}

#[test]
fn what_a_server_gives_is_checked() {
    for address in ["0.0.0.0/8", "127.0.0.1/8", "224.0.0.1/24", "255.255.255.255/32", "9.9.9.9/0"] {
        assert_eq!(lease(address, 0).sound(), None, "{address}");
        let next = begin().after(Event::Given(lease(address, 1_000)), 1_000);
        assert_eq!((next.phase, next.lease), (Phase::Searching, None), "{address}");
    }
    let short = Lease { valid_s: VALID_S_MIN - 1, ..lease("10.0.0.7/24", 0) };
    assert_eq!(short.sound(), None, "each extension is written to disk");
    let mut odd = lease("10.0.0.7/24", 0);
    odd.mtu = Some(68);
    odd.dns.domains = ["a.example", "b\nnameserver 6.6.6.6", "", "c d"].map(str::to_owned).into();
    odd.dns.servers.push(Ipv4Addr::UNSPECIFIED.into());
    odd.routes.push(("10.2.0.0/16".parse().expect("it"), Some(Ipv4Addr::UNSPECIFIED)));
    let sound = odd.sound().expect("it has an address");
    assert_eq!((sound.mtu, sound.dns.domains), (None, vec!["a.example".to_owned()]));
    assert_eq!((sound.dns.servers.len(), sound.routes.len()), (1, 1));
}

#[test]
fn a_lease_for_ever_does_not_end() {
    let for_ever = Lease { valid_s: FOR_EVER, ..lease("10.0.0.7/24", 0) };
    assert_eq!((for_ever.until(), for_ever.left_s(u64::MAX)), (None, FOR_EVER));
    assert!(for_ever.is_valid(u64::MAX));
}

#[test]
fn a_file_is_what_is_on() {
    let path = std::env::temp_dir().join(format!("dhcp-folder-{}", std::process::id()));
    let folder = Folder::at(&path);
    assert!(!folder.has("e0") && folder.all().is_empty());
    folder.write("e0", &begin()).expect("written");
    let bound = begin().after(Event::Given(lease("10.0.0.7/24", 1_002)), 1_002);
    folder.write("e1", &bound).expect("written");
    std::fs::write(path.join("e2"), "{").expect("a damaged file");
    std::fs::write(path.join("e3 new"), "").expect("one that is being written");
    assert_eq!(folder.read("e1"), Some(bound));
    assert_eq!(folder.all().keys().collect::<Vec<_>>(), ["e0", "e1", "e2"]);
    folder.remove("e0").expect("removed");
    folder.remove("e0").expect("it is off");
    assert!(!folder.has("e0"));
    std::fs::remove_dir_all(path).expect("a folder");
}
