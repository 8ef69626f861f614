//! Which disks of a machine can be used, on a machine of files.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use e2e::scratch::Scratch;

use super::{DISK_BYTES_MIN, Machine};

const SIZE: u64 = 1 << 30;

struct Files(PathBuf);

impl Files {
    fn new(scratch: &Scratch) -> Self {
        let files = Self(scratch.path().to_owned());
        for folder in ["sys/class/block", "sys/fs/btrfs", "proc/thread-self", "dev/disk/by-id"] {
            fs::create_dir_all(files.0.join(folder)).expect("made");
        }
        files.write("proc/swaps", "Filename Type Size Used Priority\n");
        files.write("proc/thread-self/mountinfo", "");
        files
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// A disk, or a partition of one, as sysfs has them: links to nested folders.
    fn disk(&self, name: &str, whole: Option<&str>, size: u64) -> fs::File {
        let nested = whole.map_or_else(|| name.to_owned(), |whole| format!("{whole}/{name}"));
        self.write(&format!("sys/devices/{nested}/size"), &format!("{}\n", size / 512));
        if whole.is_some() {
            self.write(&format!("sys/devices/{nested}/partition"), "1\n");
        }
        let link = self.0.join("sys/class/block").join(name);
        symlink(Path::new("../../devices").join(nested), link).expect("linked");
        let path = self.0.join("dev").join(name);
        let file = fs::File::options().write(true).create_new(true).open(path).expect("made");
        file.set_len(size).expect("sparse");
        file
    }

    fn id(&self, id: &str, name: &str) {
        let link = self.0.join("dev/disk/by-id").join(id);
        symlink(Path::new("../..").join(name), link).expect("linked");
    }

    fn reason(&self, name: &str) -> Option<String> {
        let disks = Machine::at(&self.0).disks().expect("listed");
        disks.into_iter().find(|disk| disk.name == name).expect("a disk").reason
    }

    fn refused(&self, names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let refused = Machine::at(&self.0).select(&names).expect_err("refused");
        refused.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn each_use_of_a_disk_is_its_reason() {
    let scratch = Scratch::new("disks");
    let files = Files::new(&scratch);
    for name in ["sda", "sdb", "sdc", "sdd", "sde", "sdf", "sdh", "sdi"] {
        files.disk(name, None, SIZE);
    }
    files.disk("sda1", Some("sda"), SIZE);
    files.disk("sda2", Some("sda"), SIZE);
    files.disk("sdg", None, DISK_BYTES_MIN - 512);
    files.write("proc/swaps", "Filename Type\n/dev/sdb partition 1 0 -2\n");
    let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:32 / /srv/a rw - xfs /dev/sdc rw\n";
    files.write("proc/thread-self/mountinfo", mounts);
    files.write("sys/fs/btrfs/f00/label", "plimsoll:tank\n");
    fs::create_dir_all(files.0.join("sys/fs/btrfs/f00/devices/sdd")).expect("made");
    fs::create_dir_all(files.0.join("sys/devices/sde/holders/md0")).expect("made");
    let ext4 = fs::File::options().write(true).open(files.0.join("dev/sdf")).expect("opened");
    ext4.write_all_at(&[0x53, 0xef], 0x438).expect("written");
    files.write("sys/devices/sdi/ro", "1\n");
    let expected = [
        ("sda", Some("it has partitions")),
        ("sda1", Some("it is mounted at /")),
        ("sda2", Some("it is a partition of the system disk")),
        ("sdb", Some("it is swap")),
        ("sdc", Some("it is mounted at /srv/a")),
        ("sdd", Some("it is in use by the mounted pool tank")),
        ("sde", Some("it is a part of md0")),
        ("sdf", Some("there is a signature of ext on it")),
        ("sdg", Some("it is smaller than 128 MiB")),
        ("sdh", None),
        ("sdi", Some("it is read-only")),
    ];
    for (name, reason) in expected {
        assert_eq!(files.reason(name).as_deref(), reason, "{name}");
    }
}

#[test]
fn a_disk_is_named_once_and_by_a_path_below_dev() {
    let scratch = Scratch::new("disks-named");
    let files = Files::new(&scratch);
    files.disk("sda", None, SIZE);
    files.disk("sdb", None, SIZE);
    files.id("wwn-0x5000", "sda");
    files.id("ata-model_serial", "sda");
    let disks = Machine::at(&files.0).disks().expect("listed");
    assert_eq!(disks[0].ids, ["wwn-0x5000", "ata-model_serial"]);
    let twice = "it is named twice: sda";
    assert!(files.refused(&["/dev/sda", "/dev/sda"])[0].ends_with(twice));
    assert!(files.refused(&["/dev/disk/by-id/wwn-0x5000", "/dev/sda"])[0].ends_with(twice));
    for path in ["/etc/passwd", "/dev/../etc/passwd", "sda", "/dev/sdz", "/dev/", "/dev/disk/by-id"]
    {
        assert!(files.refused(&[path])[0].ends_with("there is no such disk below /dev"), "{path}");
    }
    symlink("/etc/passwd", files.0.join("dev/out")).expect("linked");
    assert!(files.refused(&["/dev/out"])[0].ends_with("there is no such disk below /dev"));
    let both = ["/dev/sdb".to_owned(), "/dev/disk/by-id/wwn-0x5000".to_owned()];
    assert_eq!(Machine::at(&files.0).select(&both).expect("usable").len(), 2);
}
