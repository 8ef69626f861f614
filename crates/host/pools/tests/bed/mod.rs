//! Disks of a test: sparse files as loop devices, in a namespace of mounts of the test's thread.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use e2e::loops::tool;
use e2e::scratch::Scratch;
use e2e::{has, is_root};

/// Runs a tool that is expected to work; what it printed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    tool(Command::new(program).args(arguments)).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes the kernel forget these devices. Without a name it would forget those of other tests,
/// in the middle of a mount.
pub fn forget(devices: &[&str]) {
    for device in devices {
        // It fails for a device that the kernel does not know.
        let _forgotten = tool(Command::new("btrfs").args(["device", "scan", "--forget", device]));
    }
}

/// Some disks, which go with this value.
pub struct Bed {
    devices: Vec<Option<String>>,
    size: u64,
    scratch: Scratch,
}

impl Bed {
    #[allow(dead_code, reason = "tests of ZFS have other reasons not to run")]
    /// This number of disks of this size in MiB, of sparse files; none, with a line that gives
    /// the reason, where that is not possible.
    pub fn new(name: &str, count: usize, mib: u64) -> Option<Self> {
        let lacks = host_pools::pool::lacks();
        let lacks = lacks.or_else(|| (!has("btrfs")).then(|| "btrfs is not installed".to_owned()));
        Self::with(name, count, mib, lacks)
    }

    /// As [`Self::new`], for a test that has its own reasons not to run.
    pub fn with(name: &str, count: usize, mib: u64, lacks: Option<String>) -> Option<Self> {
        let lacks = (!is_root()).then(|| "only root can mount".to_owned()).or(lacks);
        // SAFETY: a bare system call that concerns the calling thread alone.
        let lacks = lacks.or_else(|| match unsafe { libc::unshare(libc::CLONE_NEWNS) } {
            0 => tool(Command::new("mount").args(["--make-rprivate", "/"])).err(),
            _ => Some("namespaces of mounts are not permitted".to_owned()),
        });
        let mut bed =
            Self { devices: vec![None; count], size: mib << 20, scratch: Scratch::new(name) };
        let lacks = lacks.or_else(|| (0..count).find_map(|at| bed.connect(at).err()));
        if let Some(lacks) = lacks {
            println!("SKIP pools_{name}: {lacks}");
            return None;
        }
        Some(bed)
    }

    /// The file of a disk.
    pub fn image(&self, at: usize) -> PathBuf {
        self.scratch.path().join(format!("disk{at}"))
    }

    fn connect(&mut self, at: usize) -> Result<(), String> {
        let image = self.image(at);
        let file = File::options().create(true).truncate(false).write(true).open(&image);
        file.and_then(|file| file.set_len(self.size)).map_err(|e| e.to_string())?;
        let device = tool(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        self.devices[at] = Some(device);
        Ok(())
    }

    /// Paths of all disks.
    pub fn disks(&self) -> Vec<String> {
        self.devices.iter().flatten().cloned().collect()
    }

    /// Disconnects a disk.
    pub fn detach(&mut self, at: usize) {
        let device = self.devices[at].take().expect("connected");
        forget(&[&device]);
        run("losetup", &["--detach", &device]);
        // It is only marked as going while another test reads what is on all disks.
        let backing = device.replace("/dev/", "/sys/block/") + "/loop/backing_file";
        let image = self.image(at);
        let deadline = Instant::now() + e2e::patience(60);
        while fs::read_to_string(&backing).is_ok_and(|file| Path::new(file.trim()) == image) {
            assert!(Instant::now() < deadline, "{device} is not disconnected");
            std::thread::yield_now();
        }
    }

    /// Connects it again; its path, which may be another one.
    pub fn attach(&mut self, at: usize) -> String {
        self.connect(at).expect("connected");
        self.devices[at].clone().expect("connected")
    }

    /// A further disk that is too small.
    pub fn small(&mut self) -> String {
        self.devices.push(None);
        let at = self.devices.len() - 1;
        self.connect(at).expect("connected");
        let device = self.devices[at].clone().expect("connected");
        let file = File::options().write(true).open(self.image(at)).expect("opened");
        file.set_len(100 << 20).expect("cut");
        run("losetup", &["--set-capacity", &device]);
        device
    }

    /// Where pools are mounted.
    pub fn at(&self) -> PathBuf {
        self.scratch.path().join("mounted")
    }

    /// Where a part of a pool is mounted for a moment.
    pub fn aside(&self) -> PathBuf {
        self.scratch.path().join("aside")
    }

    /// Where another file system is mounted.
    pub fn other(&self) -> PathBuf {
        self.scratch.path().join("other")
    }

    /// Writes onto a disk.
    pub fn write(&self, at: usize, offset: u64, bytes: &[u8]) {
        let path = self.devices[at].as_ref().expect("connected");
        let file = File::options().write(true).open(path).expect("opened");
        file.write_all_at(bytes, offset).expect("written");
        file.sync_all().expect("flushed");
    }

    /// Writes back and drops what this machine has cached.
    pub fn drop_cache(&self) {
        run("sync", &[]);
        fs::write("/proc/sys/vm/drop_caches", "3").expect("drop_caches");
    }

    /// A digest of each disk.
    pub fn sums(&self) -> Vec<String> {
        let images = (0..self.devices.len()).map(|at| self.image(at));
        images.map(|image| run("sha256sum", &[image.to_str().expect("text")])).collect()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let pools = fs::read_dir(self.at()).into_iter().flatten().flatten().map(|one| one.path());
        let aside = self.other().join("aside");
        let places = [self.at(), self.aside(), self.other(), aside].into_iter().chain(pools);
        for place in places {
            let _gone = tool(Command::new("umount").arg("-l").arg(place));
        }
        for device in self.devices.iter().flatten() {
            forget(&[device]);
            let _gone = tool(Command::new("losetup").args(["--detach", device]));
        }
    }
}
