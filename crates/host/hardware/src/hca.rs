//! Host channel adapters of InfiniBand, and RDMA devices of other links.

use host::Root;
use serde::{Deserialize, Serialize};

use crate::files::{link_names, names, text};

const CLASS: &str = "sys/class/infiniband";
/// Most adapters: a name has a number of three digits at most.
const ADAPTERS_MAX: usize = 256;
/// Most ports of one; a switch's own device has 36 and more.
const PORTS_MAX: usize = 256;
/// Most GIDs and partitions of a port that are read: tables have 128 entries, nearly all empty.
const TABLE_MAX: usize = 128;

/// A host channel adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hca {
    /// `mlx4_0`.
    pub name: String,
    /// PCI address of its function.
    pub address: Option<String>,
    /// Firmware.
    pub firmware: Option<String>,
    /// Board (PSID).
    pub board: Option<String>,
    /// Kind: `MT26428`.
    pub kind: Option<String>,
    /// Hardware revision.
    pub revision: Option<String>,
    /// GUID of the node.
    pub node_guid: Option<String>,
    /// GUID of the system image.
    pub system_guid: Option<String>,
    /// Description of the node.
    pub description: Option<String>,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// A port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its number, from 1.
    pub number: u32,
    /// Logical state: `ACTIVE`.
    pub state: Option<String>,
    /// Physical state: `LinkUp`.
    pub physical_state: Option<String>,
    /// `40 Gb/sec (4X QDR)`.
    pub rate: Option<String>,
    /// LID that the subnet manager gave.
    pub lid: Option<String>,
    /// LID of the subnet manager.
    pub manager_lid: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// GUID of the port: the second half of its first GID.
    pub guid: Option<String>,
    /// GIDs that are set.
    pub gids: Vec<String>,
    /// Partition keys that are set.
    pub pkeys: Vec<String>,
}

impl Port {
    /// Whether traffic can flow.
    pub fn is_active(&self) -> bool {
        self.state.as_deref() == Some("ACTIVE")
    }
}

/// All adapters.
pub fn read(root: &Root) -> Vec<Hca> {
    names(root, CLASS).into_iter().take(ADAPTERS_MAX).map(|name| adapter(root, name)).collect()
}

fn adapter(root: &Root, name: String) -> Hca {
    let folder = format!("{CLASS}/{name}");
    let read = |what: &str| text(root, &format!("{folder}/{what}"));
    let ports = names(root, &format!("{folder}/ports"));
    let mut numbers: Vec<u32> = ports.iter().filter_map(|port| port.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.truncate(PORTS_MAX);
    Hca {
        address: pci_address(&link_names(root, &folder)),
        firmware: read("fw_ver"),
        board: read("board_id"),
        kind: read("hca_type"),
        revision: read("hw_rev"),
        node_guid: read("node_guid"),
        system_guid: read("sys_image_guid"),
        description: read("node_desc"),
        ports: numbers.into_iter().map(|number| port(root, &folder, number)).collect(),
        name,
    }
}

/// The last PCI address on the way to a device.
pub(crate) fn pci_address(way: &[String]) -> Option<String> {
    let is_one = |part: &&String| {
        let mut fields = part.split([':', '.']);
        let mut is_hex = |digits: usize| {
            fields.next().is_some_and(|field| {
                field.len() == digits && field.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
        };
        is_hex(4) && is_hex(2) && is_hex(2) && is_hex(1) && fields.next().is_none()
    };
    way.iter().rfind(is_one).cloned()
}

fn port(root: &Root, adapter: &str, number_of: u32) -> Port {
    let folder = format!("{adapter}/ports/{number_of}");
    let read = |what: &str| text(root, &format!("{folder}/{what}"));
    // `4: ACTIVE`.
    let word = |what: &str| {
        let text = read(what)?;
        Some(text.split_once(": ").map_or(text.clone(), |(_, word)| word.to_owned()))
    };
    // 0 before the subnet manager has given one.
    let lid = |what: &str| {
        let text = read(what)?;
        let plain = text.strip_prefix("0x").unwrap_or(&text);
        u32::from_str_radix(plain, 16).ok().filter(|lid| *lid != 0).map(|lid| lid.to_string())
    };
    let table = |what: &str| {
        let folder = format!("{folder}/{what}");
        let mut numbers: Vec<u32> =
            names(root, &folder).iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        let entries = numbers.into_iter().take(TABLE_MAX);
        let values = entries.filter_map(|at| text(root, &format!("{folder}/{at}")));
        values
            .filter(|value| value.contains(|c: char| !matches!(c, '0' | 'x' | ':')))
            .collect::<Vec<_>>()
    };
    let gids = table("gids");
    Port {
        number: number_of,
        state: word("state"),
        physical_state: word("phys_state"),
        rate: read("rate"),
        lid: lid("lid"),
        manager_lid: lid("sm_lid"),
        link_layer: read("link_layer"),
        guid: gids.first().and_then(|gid| guid(gid)),
        pkeys: table("pkeys"),
        gids,
    }
}

/// The second half of a GID.
fn guid(gid: &str) -> Option<String> {
    let groups: Vec<&str> = gid.split(':').collect();
    let half = groups.get(4..8).filter(|_| groups.len() == 8)?;
    Some(half.join(":"))
}
