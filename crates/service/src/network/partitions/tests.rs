//! Partitions of a constructed machine with one adapter of two ports, come and go.

use std::path::{Path as FilePath, PathBuf};

use host_fabric::fake::Fake;
use host_fabric::monitor::Monitor;
use host_network::configuration::{Datalink, Interface};
use host_network::state::LinkMode;

use super::*;

/// Files of a machine; they go with this value.
struct Machine(PathBuf);

impl Machine {
    fn new(test: &str) -> Self {
        let name = format!("partitions-{test}-{}", std::process::id());
        let machine = Self(std::env::temp_dir().join(name));
        for port in [1, 2] {
            let folder = format!("class/infiniband/mlx4_0/ports/{port}");
            machine.file(&format!("{folder}/link_layer"), "InfiniBand");
            let gid = format!("fe80:0000:0000:0000:0002:c903:000b:010{port}");
            machine.file(&format!("{folder}/gids/0"), &gid);
            machine.pkey(port, 0, "0xffff");
            machine.pkey(port, 1, "0x0000");
        }
        let address = "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0b:01:01";
        for (device, kind) in [("ib0", "32"), ("ib0.8001", "32"), ("eth0", "1")] {
            machine.file(&format!("class/net/{device}/type"), kind);
            machine.file(&format!("class/net/{device}/address"), address);
        }
        machine.file("class/net/ib0.8001/parent", "ib0");
        machine
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.0.join("sys").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, format!("{text}\n")).expect("a file");
    }

    fn pkey(&self, port: u8, at: u8, pkey: &str) {
        self.file(&format!("class/infiniband/mlx4_0/ports/{port}/pkeys/{at}"), pkey);
    }

    fn ports(&self) -> Vec<Port> {
        ports(&Root::at(FilePath::new(&self.0)), &[])
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `ib0.8001`, an aggregation of it, and what uses that.
fn configuration(pkey: u16) -> Configuration {
    let mut configuration = Configuration::default();
    let class = Class::Partition { link: "ib0".to_owned(), pkey, mode: LinkMode::Datagram };
    let datalink = |class| Datalink { class, mtu: None };
    configuration.datalinks.insert("ib0.8001".to_owned(), datalink(class));
    let mode = host_network::state::Mode::active_backup(None);
    let class = Class::Aggregation { links: vec!["ib0.8001".to_owned()], mode };
    configuration.datalinks.insert("group".to_owned(), datalink(class));
    for (name, link) in [("data", "ib0.8001"), ("far", "eth0"), ("spare", "group")] {
        let links = vec![link.to_owned()];
        let interface = Interface { enabled: true, links, ..Interface::default() };
        configuration.interfaces.insert(name.to_owned(), interface);
    }
    configuration
}

#[test]
fn a_partition_that_no_datalink_uses_is_offered() {
    let machine = Machine::new("offer");
    let none = Configuration::default();
    assert_eq!(offers(&machine.ports(), &none), [""; 0]);
    machine.pkey(1, 1, "0x8001");
    machine.pkey(2, 1, "0x0002");
    assert_eq!(
        offers(&machine.ports(), &none),
        [
            "0x8001 (full) on ib0: port mlx4_0-1, GUID 0x0002c903000b0101",
            "0x0002 (limited): port mlx4_0-2, GUID 0x0002c903000b0102; it has no network device, \
             load ib_ipoib"
        ]
    );
    assert_eq!(offers(&machine.ports(), &configuration(0x8001)).len(), 1);
    machine.pkey(1, 1, "0x0000");
    machine.pkey(2, 1, "0x0000");
    assert_eq!(offers(&machine.ports(), &none), [""; 0]);
}

#[test]
fn both_p_keys_of_a_partition_are_one_offer() {
    let machine = Machine::new("one");
    machine.pkey(1, 1, "0x0001");
    machine.pkey(1, 2, "0x8001");
    machine.pkey(1, 3, "0x7fff");
    let offers = offers(&machine.ports(), &Configuration::default());
    assert_eq!(offers, ["0x8001 (full) on ib0: port mlx4_0-1, GUID 0x0002c903000b0101"]);
}

#[test]
fn a_datalink_without_its_partition_is_absent_with_its_interfaces() {
    let machine = Machine::new("absent");
    let (ports, configuration) = (machine.ports(), configuration(0x8001));
    let lost = lost(&ports, "ib0.8001", &configuration).expect("a loss");
    assert_eq!(
        lost.sentence(),
        "the subnet manager does not give partition 0x0001 (limited 0x0001, full 0x8001) to port \
         mlx4_0-1 (ib0); the interfaces data, spare have lost this link"
    );
    let fault = lost.fault();
    assert_eq!((fault.id.as_str(), fault.severity), ("partition-ib0.8001", Severity::Major));
    machine.pkey(1, 1, "0x0001");
    assert!(super::lost(&machine.ports(), "ib0.8001", &configuration).is_none(), "limited");
}

#[test]
fn a_node_and_the_problems_show_the_loss() {
    let machine = Machine::new("node");
    let root = Root::at(FilePath::new(&machine.0));
    let partitions = Partitions { root, ..Partitions::default() };
    let mut shown = vec![("state", Value::text("up")), ("found_mtu", Value::number(2044_u32))];
    partitions.mark("ib0.8001", &configuration(0x8001), &mut shown);
    assert_eq!(shown[1], ("state", Value::text("absent")));
    assert_eq!(shown.len(), 3);
    assert_eq!(partitions.faults(&configuration(0x8001)).len(), 1);
    // A device that sysfs does not have, and what is not a partition.
    let mut configuration = configuration(0x8001);
    configuration.datalinks.remove("ib0.8001");
    assert_eq!(partitions.faults(&configuration), []);
    partitions.mark("group", &configuration, &mut shown);
    assert_eq!(shown.len(), 3);
}

#[test]
fn what_is_not_known_of_a_port_is_not_a_loss() {
    let configuration = configuration(0x8001);
    assert!(lost(&[], "ib0.8001", &configuration).is_none());
}

#[test]
fn ports_of_a_fabric_are_offered_where_sysfs_has_none() {
    let mut fake = Fake::new(1, 3, 1);
    fake.pkeys = vec![0xffff, 0x8001];
    let report = Arc::new(Monitor::new(fake).pass().expect("a transport"));
    let machine = std::env::temp_dir().join("no-such-machine");
    let ports = ports(&Root::at(&machine), &[report]);
    let offers = offers(&ports, &Configuration::default());
    assert_eq!(offers.len(), 1);
    assert!(offers[0].starts_with("0x8001 (full): port host1:1, GUID 0x"), "{offers:?}");
}
