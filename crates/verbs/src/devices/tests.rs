//! A list as a kernel has it.

use super::*;

#[test]
fn devices_are_listed_as_the_kernel_has_them() {
    let folder = std::env::temp_dir().join(format!("verbs-devices-{}", std::process::id()));
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    put("siw0/node_type", "4: RNIC\n");
    put("siw0/ports/1/link_layer", "Ethernet\n");
    put("siw0/ports/1/state", "4: ACTIVE\n");
    put("mlx5_0/node_type", "1: CA\n");
    put("mlx5_0/ports/1/link_layer", "InfiniBand\n");
    put("mlx5_0/ports/1/state", "1: DOWN\n");
    std::fs::create_dir_all(folder.join("mlx5_0/device")).expect("made");
    let driver = folder.join("mlx5_0/device/driver");
    std::os::unix::fs::symlink("/sys/bus/pci/drivers/mlx5_core", driver).expect("made");
    let found = list_in(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
    let device = |name: &str, driver: &str, link_layer: &str, iwarp, state: &str| Device {
        name: name.into(),
        driver: driver.into(),
        link_layer: link_layer.into(),
        iwarp,
        state: state.into(),
    };
    let mellanox = device("mlx5_0", "mlx5_core", "InfiniBand", false, "DOWN");
    assert_eq!(found, [mellanox, device("siw0", "siw", "Ethernet", true, "ACTIVE")]);
    assert_eq!(list_in(Path::new("/nonexistent")), []);
}
