//! The devices of the machine, as the kernel lists them: no library is needed for that.

use std::path::Path;

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name, like `mlx5_0`.
    pub name: String,
    /// Its driver, like `mlx5_core`; that of a device in software is its kind (`siw`, `rxe`).
    pub driver: String,
    /// What its first port speaks: `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// Whether it speaks iWARP.
    pub iwarp: bool,
    /// Its first port's state, like `ACTIVE`.
    pub state: String,
}

/// Where the kernel lists devices.
const FOLDER: &str = "/sys/class/infiniband";

/// The devices of this machine, by name.
pub fn list() -> Vec<Device> {
    list_in(Path::new(FOLDER))
}

fn list_in(folder: &Path) -> Vec<Device> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut devices: Vec<_> = entries.flatten().map(|entry| device(&entry.path())).collect();
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    devices
}

fn device(path: &Path) -> Device {
    let text = |name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
    let word = |name: &str| text(name).trim().to_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let driver = std::fs::read_link(path.join("device/driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name).map(|d| d.to_string_lossy());
    // A device in software has no driver; it is called after its kind.
    let kind = || name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    Device {
        driver: driver.map_or_else(kind, |driver| driver.into_owned()),
        link_layer: word("ports/1/link_layer"),
        // "4: RNIC"
        iwarp: text("node_type").starts_with('4'),
        // "4: ACTIVE"
        state: word("ports/1/state").split(": ").last().unwrap_or_default().to_owned(),
        name,
    }
}

#[cfg(test)]
mod tests;
