//! Texts of a corpus, and seeded mutations of them: words put where they do not belong, bytes
//! changed, repeated, removed, cut off. The languages of Filebench and of uperf share it.

use base::random::{Random, SeededRandom};
use std::path::{Path, PathBuf};

/// How many texts are made.
const MUTATIONS: usize = 20_000;

/// The files of a folder with this extension: name and text.
pub fn texts(folder: &Path, extension: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("entry").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ext| ext == extension)).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().expect("name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).expect("text"))).collect()
}

/// Reads mutations of a corpus, of which words end at any of `ends`. None may panic; some must be
/// read and many refused, or the mutations test nothing.
pub fn read_mutations(
    corpus: &[(String, String)],
    ends: &[char],
    seed: u64,
    is_read: impl Fn(&str) -> bool,
) {
    let words: Vec<&str> = corpus.iter().flat_map(|(_, text)| text.split_inclusive(ends)).collect();
    let mut random = SeededRandom::new(seed);
    let mut read = 0;
    for _ in 0..MUTATIONS {
        let (_, text) = &corpus[random.below(corpus.len() as u64) as usize];
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(3) {
            mutate(&mut bytes, &words, &mut random);
        }
        read += usize::from(is_read(&String::from_utf8_lossy(&bytes)));
    }
    let refused = MUTATIONS - read;
    assert!(read > MUTATIONS / 50 && refused > MUTATIONS / 4, "{read} {refused}");
}

fn mutate(bytes: &mut Vec<u8>, words: &[&str], random: &mut SeededRandom) {
    bytes.extend_from_slice(b"\n");
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(5) {
        0 => bytes[at] = random.next_u64() as u8,
        1 => drop(bytes.remove(at)),
        2 => bytes.truncate(at.max(1)),
        3 => {
            let end = (at + random.below(40) as usize).min(bytes.len());
            bytes.extend_from_within(at..end);
        }
        _ => {
            let word = words[random.below(words.len() as u64) as usize];
            bytes.splice(at..at, word.bytes());
        }
    }
}
