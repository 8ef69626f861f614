//! GET LBA STATUS agrees with lseek(2) on the file below: data and holes that were there before,
//! UNMAP, WRITE SAME and WRITE, of units with blocks of 512 and of 4096 bytes.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use base::random::{Random, SeededRandom};
use e2e::api::Api;
use e2e::iscsi::{Access, Initiator, blocks};
use e2e::place::Memory;
use e2e::scene::Scene;
use e2e::skip;
use serde_json::json;
use wire::scsi::Cdb;
use wire::scsi::capacity::lba_status;
use wire::scsi::cdb::{Io, WriteSame};
use wire::scsi::unmap::{self, Extent};

/// Port of iSCSI.
const PORT: u16 = 3260;
/// Bytes of a unit.
const SIZE: u64 = 16 << 20;
/// Bytes of a page: file systems have no smaller holes.
const PAGE: u64 = 4096;
/// The status of blocks without space (SBC-4 §5.8).
const DEALLOCATED: u8 = 1;
/// Room for a descriptor for each page: more than one answer has.
const ALLOCATION: u32 = 8 + 16 * (SIZE / PAGE) as u32;

/// Where the next data, or the next hole, begins.
fn seek(file: &File, from: u64, whence: i32) -> Option<u64> {
    // SAFETY: a descriptor that is open, and plain numbers.
    let at = unsafe { libc::lseek(file.as_raw_fd(), from as libc::off_t, whence) };
    if at >= 0 {
        return Some(at as u64);
    }
    let error = io::Error::last_os_error();
    assert_eq!(error.raw_os_error(), Some(libc::ENXIO), "{error}");
    None
}

/// Which blocks have space, wholly or in part, by SEEK_DATA and SEEK_HOLE on the file.
fn mapped_in_file(path: &Path, block: u64) -> Vec<bool> {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut mapped = vec![false; (SIZE / block) as usize];
    let mut at = 0;
    while let Some(data) = seek(&file, at, libc::SEEK_DATA).filter(|data| *data < SIZE) {
        let hole = seek(&file, data, libc::SEEK_HOLE).map_or(SIZE, |hole| hole.min(SIZE));
        let (first, last) = (data / block, (hole - 1) / block);
        mapped[first as usize..=last as usize].fill(true);
        at = hole;
    }
    mapped
}

/// Which blocks have space, as the unit answers: asked on from where each answer ends.
fn mapped_in_unit(initiator: &mut Initiator, block: u64) -> Vec<bool> {
    let (all, mut mapped) = (SIZE / block, Vec::new());
    while (mapped.len() as u64) < all {
        let lba = mapped.len() as u64;
        let cdb = Cdb::GetLbaStatus { lba, allocation: ALLOCATION };
        let list = lba_status(&initiator.good(&cdb, &[], ALLOCATION)).expect("descriptors");
        assert!(!list.is_empty(), "block {lba}: no descriptor");
        let mut last = None;
        for one in list {
            assert_eq!(one.lba, mapped.len() as u64, "they follow each other");
            assert!(one.count > 0 && last != Some(one.status), "block {lba}: {one:?}");
            last = Some(one.status);
            mapped.extend((0..one.count).map(|_| one.status != DEALLOCATED));
        }
    }
    assert_eq!(mapped.len() as u64, all, "not more than there are");
    mapped
}

/// A file with pieces of data and holes between them.
fn make(path: &Path, random: &mut SeededRandom) {
    let file = File::create_new(path).expect("a file");
    file.set_len(SIZE).expect("its size");
    let mut at = random.below(2 * PAGE);
    while at < SIZE {
        let length = (1 + random.below(3 * PAGE)).min(SIZE - at);
        file.write_all_at(&vec![0x5a; length as usize], at).expect("data");
        at += length + random.below(4 * PAGE);
    }
}

/// Changes some blocks by each of the commands that give space or take it away.
fn change(initiator: &mut Initiator, block: u64, random: &mut SeededRandom) {
    let mut range = || {
        let count = 1 + random.below(8 * PAGE / block);
        (random.below(SIZE / block - count), count as u32)
    };
    let extents: Vec<Extent> =
        (0..8).map(|_| range()).map(|(lba, count)| Extent { lba, count }).collect();
    let mut list = Vec::new();
    unmap::put(&extents, &mut list);
    let list_length = list.len() as u16;
    initiator.good(&Cdb::Unmap { group: 0, list_length }, &list, 0);
    for (unmap, no_data) in [(true, false), (true, true), (false, false), (false, true)] {
        for byte in [0, 0x77] {
            let (lba, count) = range();
            let same = WriteSame { blocks: blocks(lba, count), unmap, no_data };
            let data = vec![byte; if no_data { 0 } else { block as usize }];
            initiator.good(&Cdb::WriteSame(same), &data, 0);
        }
    }
    for force_unit_access in [false, true] {
        let (lba, count) = range();
        let io = Io { blocks: blocks(lba, count), no_cache: false, force_unit_access };
        let data = vec![0x11; count as usize * block as usize];
        initiator.good(&Cdb::Write(io), &data, 0);
    }
}

/// A unit with such a file, and another one.
fn agrees(scene: &Scene, (at, lun): (SocketAddr, u16), place: &Path, block: u64) {
    let mut random = SeededRandom::new(25 + block);
    let path = place.join(format!("unit-{block}"));
    make(&path, &mut random);
    let before = mapped_in_file(&path, block);
    let properties = json!({"backing": "file", "path": path, "volsize": SIZE.to_string(),
        "volblocksize": block.to_string(), "assignednumber": lun});
    let create = json!({"create": "/shares/default/luns", "name": format!("unit-{block}-{lun}"),
        "properties": properties});
    let api = Api::new(&scene.state);
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": [create] }));
    assert_eq!(code, 200, "{create}: {answer}");
    let access = Access::of(&scene.state);
    let mut initiator = Initiator::connect(at, &access, lun as u8).expect("a session");
    initiator.select(lun).expect("the unit");
    for round in 0..8 {
        let file = mapped_in_file(&path, block);
        let unit = mapped_in_unit(&mut initiator, block);
        let differs = file.iter().zip(&unit).position(|(one, other)| one != other);
        assert_eq!(differs, None, "{}, round {round}: a block", path.display());
        let runs = unit.windows(2).filter(|two| two[0] != two[1]).count();
        assert!(runs > 300, "{runs} runs of data and holes are more than one answer has");
        assert!(round == 0 || unit != before, "the commands have changed something");
        change(&mut initiator, block, &mut random);
    }
}

#[test]
fn what_a_unit_reports_of_its_space_is_what_the_file_has() {
    let scene = Scene::new("lun-space");
    let mut server = scene.start(&["--lun", "disk=1M"]);
    let at = server.at(PORT);
    let disk = scene.scratch.folder("files", None);
    for (lun, block) in [(1, 512), (2, 4096)] {
        agrees(&scene, (at, lun), &disk, block);
    }
    let memory = match Memory::new("size=64m") {
        Ok(memory) => memory,
        Err(why) => skip!("lun-space-memory", "{why}"),
    };
    agrees(&scene, (at, 3), memory.path(), 512);
    assert!(server.stop().success());
}
