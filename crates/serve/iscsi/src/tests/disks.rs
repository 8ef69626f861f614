//! Units over real file systems: one that is full, one that can only be read, one that gives space
//! back; and one that grows while it is used.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use vfs::lun::Medium;
use vfs::lun::file::{FileMedium, Space};
use wire::iscsi::Digests;
use wire::scsi::unmap::{self, Extent};
use wire::scsi::{Asc, Cdb, SenseKey, Status};

use super::client::{Client, How, read};
use super::{BLOCK, Bench};
use crate::targets::SignIn;

/// A folder that goes away with its test, and what is mounted on it.
struct Folder {
    path: PathBuf,
    is_mounted: bool,
}

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("plimsoll-test-{name}-{}-0", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self { path, is_mounted: false }
    }

    /// A file system in memory of this size.
    fn mounted(name: &str, size: &str) -> Result<Self, String> {
        let mut folder = Self::new(name);
        let options = format!("size={size}");
        tool("mount", &["-t", "tmpfs", "-o", &options, "none"], &folder.path)?;
        folder.is_mounted = true;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_mounted {
            // What stays mounted is in the system's folder for that.
            let _ = tool("umount", &["-l"], &self.path);
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn tool(program: &str, arguments: &[&str], path: &Path) -> Result<(), String> {
    let output = Command::new(program).args(arguments).arg(path).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn ready(bench: &Bench, isid: u8, luns: u16) -> Client {
    let mut client = Client::new(bench, &How { isid, ..How::default() });
    (0..luns).for_each(|lun| client.settle(lun));
    client
}

#[test]
fn a_full_disk_stops_its_unit_alone() {
    let full = match Folder::mounted("full", "4m") {
        Ok(folder) => folder,
        Err(why) => return println!("SKIP iscsi/full-disk: {why}"),
    };
    let other = Folder::new("not-full");
    let media = [&full, &other].map(|folder| -> Arc<dyn Medium> {
        let path = folder.path.join("disk");
        Arc::new(FileMedium::create(&path, 16 << 20, Space::Sparse).expect("sparse"))
    });
    let bench = Bench::over(media.to_vec(), SignIn::default());
    let mut client = ready(&bench, 1, 2);
    let piece = vec![7; 64 << 10];
    let blocks = (piece.len() / BLOCK) as u64;
    let mut lba = 0;
    let answer = loop {
        let answer = client.write(0, lba, &piece);
        if answer.status != Status::GOOD {
            break answer;
        }
        lba += blocks;
        assert!(lba < 32 << 11, "it is full in the end");
    };
    let sense = answer.sense.expect("sense data");
    assert_eq!((sense.key, sense.asc), (SenseKey::DATA_PROTECT, Asc::SPACE_ALLOCATION_FAILED));
    assert_eq!(client.write(1, 0, &piece).status, Status::GOOD, "the other one goes on");
    assert_eq!(client.read(0, 0, 8).data, [7; 8 * BLOCK], "what was written is there");
    // What is given back can be written again.
    let (cdb, list) = to_unmap(&[(0, blocks as u32)]);
    assert_eq!(client.run(0, cdb, true, list.len() as u32, &list).status, Status::GOOD);
    assert_eq!(client.write(0, 0, &piece).status, Status::GOOD);
}

fn to_unmap(ranges: &[(u64, u32)]) -> (Cdb, Vec<u8>) {
    let one = |(lba, count): &(u64, u32)| Extent { lba: *lba, count: *count };
    let all: Vec<Extent> = ranges.iter().map(one).collect();
    let mut list = Vec::new();
    unmap::put(&all, &mut list);
    let list_length = u16::try_from(list.len()).expect("short");
    (Cdb::Unmap { group: 0, list_length }, list)
}

#[test]
fn what_is_unmapped_is_given_back() {
    const SIZE: u64 = 1 << 30;
    let folder = Folder::new("unmap");
    let medium = FileMedium::create(&folder.path.join("disk"), SIZE, Space::Reserved);
    let medium = match medium {
        Ok(medium) => Arc::new(medium),
        Err(why) => return println!("SKIP iscsi/unmap: 1 GiB cannot be reserved: {why}"),
    };
    let bench = Bench::over(vec![medium.clone()], SignIn::default());
    let mut client = ready(&bench, 1, 1);
    let before = medium.status().allocated;
    assert!(before >= SIZE, "{before}");
    let half = SIZE / 2 / BLOCK as u64;
    for start in [0, half] {
        let (cdb, list) = to_unmap(&[(start, half as u32)]);
        assert_eq!(client.run(0, cdb, true, list.len() as u32, &list).status, Status::GOOD);
    }
    let after = medium.status().allocated;
    assert!(after <= before / 100, "{after} of {before} are still taken");
    assert_eq!(client.read(0, half, 1).data, [0; BLOCK]);
}

#[test]
fn a_read_only_file_system_is_reported() {
    let folder = match Folder::mounted("read-only", "4m") {
        Ok(folder) => folder,
        Err(why) => return println!("SKIP iscsi/read-only: {why}"),
    };
    let path = folder.path.join("disk");
    drop(FileMedium::create(&path, 1 << 20, Space::Sparse).expect("made"));
    if let Err(why) = tool("mount", &["-o", "remount,ro"], &folder.path) {
        return println!("SKIP iscsi/read-only: {why}");
    }
    assert!(FileMedium::open(&path, false).is_err());
    let medium = Arc::new(FileMedium::open(&path, true).expect("it can be read"));
    let bench = Bench::over(vec![medium], SignIn::default());
    let mut client = ready(&bench, 1, 1);
    let answer = client.write(0, 0, &[7; BLOCK]);
    let sense = answer.sense.expect("sense data");
    assert_eq!((sense.key, sense.asc), (SenseKey::DATA_PROTECT, Asc::WRITE_PROTECTED));
    assert_eq!(client.read(0, 0, 1).data, [0; BLOCK]);
}

#[test]
fn a_unit_that_grows_reports_it_to_each_initiator() {
    let folder = Folder::new("grow");
    let path = folder.path.join("disk");
    let medium = Arc::new(FileMedium::create(&path, 1 << 20, Space::Sparse).expect("made"));
    let bench = Bench::over(vec![medium], SignIn::default());
    let mut clients = [1, 2].map(|isid| ready(&bench, isid, 1));
    let last = (2 << 20) / BLOCK as u64 - 1;
    for client in &mut clients {
        let answer = client.read(0, last, 1);
        let sense = answer.sense.expect("sense data");
        assert_eq!(sense.asc, Asc::LBA_OUT_OF_RANGE);
    }
    bench.unit(0).resize(2 << 20).expect("grown");
    for client in &mut clients {
        let answer = client.read(0, last, 1);
        let sense = answer.sense.expect("sense data");
        let reported = (sense.key, sense.asc);
        assert_eq!(reported, (SenseKey::UNIT_ATTENTION, Asc::CAPACITY_CHANGED), "2A/09");
        assert_eq!(client.read(0, last, 1).status, Status::GOOD, "without logging in anew");
    }
}

#[test]
fn large_reads_leave_from_the_page_cache_and_are_what_was_written() {
    const LARGE: usize = 1 << 20;
    let folder = Folder::new("mapped");
    let path = folder.path.join("disk");
    let medium = Arc::new(FileMedium::create(&path, 8 << 20, Space::Sparse).expect("made"));
    let bench = Bench::over(vec![medium.clone()], SignIn::default());
    let plain = How::default();
    let mut digests = How { isid: 2, ..How::default() };
    digests.wishes.digests = Digests { header: true, data: true };
    let mut odd = How { isid: 3, ..How::default() };
    odd.wishes.max_recv_data = 65_531;
    let mut clients = [plain, digests, odd].map(|how| {
        let mut client = Client::new(&bench, &how);
        client.settle(0);
        client
    });
    let count = (LARGE / BLOCK) as u32;
    for round in 0..4_u8 {
        let data: Vec<u8> = (0..LARGE).map(|n| (n / 97) as u8 ^ round).collect();
        assert_eq!(clients[0].write(0, 2048, &data).status, Status::GOOD);
        for client in &mut clients {
            assert!(client.read(0, 2048, count).data == data, "round {round}");
            // One that is asked for in part, and one that has a hole.
            let expected = LARGE as u32 - 6;
            let answer = client.run(0, read(2048, count), false, expected, &[]);
            assert!(answer.data[..] == data[..LARGE - 6]);
            let answer = client.read(0, 2048 + u64::from(count) / 2, count);
            let (written, hole) = answer.data.split_at(LARGE / 2);
            assert!(written == &data[LARGE / 2..] && hole.iter().all(|byte| *byte == 0));
        }
    }
    if medium.slice(LARGE as u64, LARGE).is_none() {
        println!("SKIP iscsi/mapped: the kernel does not say what is in its cache");
    }
}
