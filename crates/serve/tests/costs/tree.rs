//! A share that makes requests expensive: large directories, long and looping links, deep paths,
//! names that are hidden, files with many holes. And paths in it, by a seed.

use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use base::random::{Random, SeededRandom};

use crate::scene::Scratch;
use crate::search::number;

/// Names in the large directory: 50,000 in the long test, fewer where they are made each time.
pub fn names() -> usize {
    number("PLIMSOLL_COSTS_NAMES").unwrap_or(20_000)
}

/// The tree, in memory; its folder `share` is to be served, and any user may write there.
pub fn new() -> Scratch {
    let folder = Scratch::in_memory();
    let share = folder.0.join("share");
    for (dir, count) in [("large", names()), ("few", 300), ("hidden", 3_000)] {
        let dir = share.join(dir);
        std::fs::create_dir(&dir).expect("made");
        let before = if dir.ends_with("hidden") { ".plimsoll-upload-" } else { "" };
        for n in 0..count {
            let name = format!("{before}{n}{}", "a".repeat(60));
            std::fs::File::create(dir.join(name)).expect("made");
        }
    }
    let mut deep = share.join("deep");
    std::fs::create_dir(&deep).expect("made");
    for _ in 0..100 {
        deep.push("d");
        std::fs::create_dir(&deep).expect("made");
    }
    links(&share);
    std::fs::create_dir(share.join("work")).expect("made");
    let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(share.join("work"), anybody).expect("its mode");
    std::fs::write(share.join("small"), b"small").expect("written");
    folder.set_len("share/sparse", 64 << 20);
    let holes = folder.set_len("share/holes", 16 << 20);
    for n in 0..2_000 {
        holes.write_all_at(&[7; 4096], n * 8192).expect("written");
    }
    folder
}

/// Links to themselves, to each other, in long chains, and of the longest targets.
fn links(share: &Path) {
    let links = share.join("links");
    std::fs::create_dir_all(links.join("d")).expect("made");
    let link = |target: &str, name: &str| symlink(target, links.join(name)).expect("made");
    link("self", "self");
    link("b", "a");
    link("a", "b");
    for n in 0..45 {
        link(&format!("chain{}", n + 1), &format!("chain{n}"));
    }
    link("../large", "chain45");
    // 254 parts that come back to where they begin.
    link(&"d/../".repeat(127), "long");
    // Links of links: as many parts as a way may have.
    link(&"long/../links/".repeat(100), "longer");
    link("..", "up");
    let many = share.join("many");
    std::fs::create_dir(&many).expect("made");
    for n in 0..500 {
        let target = ["../links/long", "../links/longer", "../links/self", "../small"][n % 4];
        symlink(target, many.join(format!("{n}"))).expect("made");
    }
}

/// One of these.
pub fn one_of<'a, T: ?Sized>(random: &mut SeededRandom, all: &[&'a T]) -> &'a T {
    all[random.below(all.len() as u64) as usize]
}

/// A number up to `most`, small ones as likely as large ones.
pub fn up_to(random: &mut SeededRandom, most: u64) -> u64 {
    let bits = u64::from(u64::BITS - most.leading_zeros());
    let shift = random.below(bits + 1);
    (random.next_u64() & most) >> shift.min(63)
}

/// A path below the root of the share, without a slash in front, at most as long as any may be.
pub fn path(random: &mut SeededRandom) -> String {
    const PARTS: [&str; 16] = [
        "large", "few", "links", "long", "longer", "up", "chain0", "self", "a", "deep", "d",
        "many", "..", ".", "small", "work",
    ];
    match random.below(4) {
        0 => one_of(random, &PARTS).to_owned(),
        1 => {
            let step = one_of(
                random,
                &[
                    "links/long/",
                    "links/up/",
                    "links/longer/",
                    "deep/d/../../",
                    "deep/",
                    "./",
                    "d/",
                ],
            );
            let count = up_to(random, (4_000 / step.len()) as u64) as usize;
            format!("{}{}", step.repeat(count), one_of(random, &PARTS))
        }
        2 => {
            let count = 1 + up_to(random, 250);
            let parts: Vec<_> = (0..count).map(|_| one_of(random, &PARTS)).collect();
            parts.join("/")
        }
        _ => {
            let name = one_of(random, &["a", "é", "%", "&", " "]);
            let count = 1 + up_to(random, 254) as usize;
            format!("{}/{}", one_of(random, &PARTS), name.repeat(count / name.len() + 1))
        }
    }
}
