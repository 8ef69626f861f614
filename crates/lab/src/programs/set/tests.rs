//! What a set is like, against what it was made from.

use super::*;
use lab_program::dist::{Dist, Form};
use lab_program::tree::SetSpec;

#[test]
fn figures_are_those_of_the_existing_files() {
    let size = Form::Gamma { shape: 1.5, mean: 16384.0 }.into();
    let spec = SetSpec { prealloc: 80, ..SetSpec::set("s", 20_000, Dist::fixed(20), size) };
    let figures = Figures::of(&Tree::new(spec, 7).expect("tree"));
    let within = |value: f64, of: f64, share: f64| (value / of - 1.0).abs() < share;
    assert!(within(figures.existing as f64, 16_000.0, 0.02), "{figures:?}");
    assert!(within(figures.size_mean, 16384.0, 0.02), "{figures:?}");
    assert!(figures.directories > 500 && figures.depth_mean > 2.0, "{figures:?}");
}

#[test]
fn a_single_file_is_in_no_directory() {
    let spec = SetSpec { prealloc: 100, ..SetSpec::file("f", Dist::fixed(8192)) };
    let figures = Figures::of(&Tree::new(spec, 7).expect("tree"));
    assert_eq!((figures.entries, figures.existing, figures.directories), (1, 1, 0));
    assert_eq!((figures.size_mean, figures.depth_mean), (8192.0, 0.0));
}

#[test]
fn contents_of_files_differ() {
    let keys = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0)];
    let mut keys: Vec<u64> = keys.map(|(seed, set, file)| content_key(seed, set, file)).to_vec();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 4);
}
