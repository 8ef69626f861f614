//! InfiniBand adapters against ibstat, which reads the files of a constructed machine.

use std::fs;
use std::process::Command;

use e2e::{has, is_root, skip};
use host_hardware::Hardware;
use host_hardware::hca::{Hca, Port};

use super::common::Machine;

/// Files that ibstat needs and the readers do not, with their values.
const OF_ADAPTER: [(&str, &str); 1] = [("node_type", "1: CA")];
const OF_PORT: [(&str, &str); 3] =
    [("lid_mask_count", "0"), ("sm_sl", "0"), ("cap_mask", "0x02510868")];

#[test]
fn adapters_as_ibstat() {
    if !is_root() || !has("ibstat") || !has("unshare") {
        skip!("hardware-ibstat", "needs root, unshare, ibstat");
    }
    let machine = Machine::unpack("hcas");
    let hcas = Hardware::read(&machine.root()).hcas;
    let sys = machine.path().join("sys");
    let write = |name: String, text: &str| {
        let path = sys.join("class").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("infiniband_mad/abi_version".to_owned(), "5\n");
    for hca in &hcas {
        OF_ADAPTER
            .iter()
            .for_each(|(file, text)| write(format!("infiniband/{}/{file}", hca.name), text));
        for port in &hca.ports {
            let folder = format!("infiniband/{}/ports/{}", hca.name, port.number);
            OF_PORT.iter().for_each(|(file, text)| write(format!("{folder}/{file}"), text));
        }
    }
    let mut command = Command::new("unshare");
    let line = format!("mount --bind {} /sys && ibstat", sys.display());
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output =
        command.args(["-m", "sh", "-c", &line]).env("PATH", path).output().expect("ibstat");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let expected: String = hcas.iter().map(adapter).collect();
    assert_eq!(text, expected);
    assert_eq!(hcas.iter().map(|hca| hca.ports.len()).sum::<usize>(), 4);
    println!("{} adapters are as ibstat prints them", hcas.len());
}

fn guid(guid: Option<&String>) -> String {
    format!("0x{}", guid.map(|guid| guid.replace(':', "")).unwrap_or_default())
}

fn text(value: Option<&String>) -> &str {
    value.map_or("", String::as_str)
}

/// An adapter as ibstat prints it.
fn adapter(hca: &Hca) -> String {
    let mut lines = format!("CA '{}'\n", hca.name);
    lines += &format!("\tCA type: {}\n", text(hca.kind.as_ref()));
    lines += &format!("\tNumber of ports: {}\n", hca.ports.len());
    lines += &format!("\tFirmware version: {}\n", text(hca.firmware.as_ref()));
    lines += &format!("\tHardware version: {}\n", text(hca.revision.as_ref()));
    lines += &format!("\tNode GUID: {}\n", guid(hca.node_guid.as_ref()));
    lines += &format!("\tSystem image GUID: {}\n", guid(hca.system_guid.as_ref()));
    lines + &hca.ports.iter().map(port).collect::<String>()
}

fn port(port: &Port) -> String {
    // `ACTIVE` is printed as `Active`.
    let state = text(port.state.as_ref()).to_lowercase();
    let state = state.get(..1).unwrap_or_default().to_uppercase() + state.get(1..).unwrap_or("");
    let rate = text(port.rate.as_ref()).split(' ').next().unwrap_or_default();
    let lid = |lid: Option<&String>| lid.cloned().unwrap_or_else(|| "0".to_owned());
    let mut lines = format!("\tPort {}:\n", port.number);
    lines += &format!("\t\tState: {state}\n");
    lines += &format!("\t\tPhysical state: {}\n", text(port.physical_state.as_ref()));
    lines += &format!("\t\tRate: {rate}\n");
    lines += &format!("\t\tBase lid: {}\n\t\tLMC: 0\n", lid(port.lid.as_ref()));
    lines += &format!("\t\tSM lid: {}\n", lid(port.manager_lid.as_ref()));
    lines += &format!("\t\tCapability mask: {}\n", OF_PORT[2].1);
    lines += &format!("\t\tPort GUID: {}\n", guid(port.guid.as_ref()));
    lines + &format!("\t\tLink layer: {}\n", text(port.link_layer.as_ref()))
}
