//! Trees: their figures, their names, their memory.

use super::*;
use crate::members::Slice;
use std::collections::HashSet;

fn gamma_set(entries: u64, width: u64, mean: f64) -> SetSpec {
    let size = Form::Gamma { shape: 1.5, mean }.into();
    SetSpec { prealloc: 80, ..SetSpec::set("bigfileset", entries, Dist::fixed(width), size) }
}

fn tree(spec: SetSpec) -> Tree {
    Tree::new(spec, 42).expect("tree")
}

#[test]
fn a_million_files_take_at_most_64_mib() {
    for width in [20, 3] {
        let tree = tree(gamma_set(1_000_000, width, 16384.0));
        let slice = Slice::new(tree.files(), 0, 1, |file| tree.exists(file));
        let bytes = tree.memory() + slice.memory();
        assert!(bytes <= 64 << 20, "width {width}: {bytes} bytes");
        let share = slice.existing() as f64 / 1e6;
        assert!((share - 0.8).abs() < 0.002, "width {width}: {share}");
        assert_eq!(tree.files(), 1_000_000);
        println!("width {width}: {bytes} bytes, {} directories", tree.directories());
    }
}

#[test]
fn sizes_and_widths_have_their_means() {
    let tree = tree(gamma_set(100_000, 20, 16384.0));
    let sum: u64 = (0..tree.files()).map(|file| tree.size(file)).sum();
    let mean = sum as f64 / 1e5;
    assert!((mean / 16384.0 - 1.0).abs() < 0.02, "mean size {mean}");
    let leaves: HashSet<u64> = (0..tree.files()).map(|file| tree.directory_of(file)).collect();
    let width = 1e5 / leaves.len() as f64;
    // The width is rounded up, which adds half an entry.
    assert!((width / 20.5 - 1.0).abs() < 0.02, "mean width {width}");
    assert!((tree.mean_depth() - 1e5f64.ln() / 20f64.ln()).abs() < 1e-9);
}

#[test]
fn without_variation_the_tree_is_regular() {
    let spec = SetSpec { dir_gamma: 0.0, ..gamma_set(1000, 10, 1.0) };
    let tree = tree(spec);
    // ln(1000) ÷ ln(10), truncated: rounding may leave 2.
    let depth = tree.mean_depth() as u32;
    assert!((0..1000).all(|file| tree.depth(file) == depth), "depth {depth}");
    assert_eq!(tree.file_path(0).matches('/').count() as u32, depth);
}

#[test]
fn names_are_unlike_and_the_same_for_the_same_seed() {
    let one = tree(gamma_set(20_000, 5, 100.0));
    let two = tree(gamma_set(20_000, 5, 100.0));
    let other = Tree::new(gamma_set(20_000, 5, 100.0), 43).expect("tree");
    let mut names = HashSet::new();
    let directories: HashSet<String> =
        (0..one.directories()).map(|d| one.directory_path(d)).collect();
    assert_eq!(directories.len() as u64, one.directories());
    for file in 0..one.files() {
        let path = one.file_path(file);
        assert_eq!((&path, one.size(file)), (&two.file_path(file), two.size(file)));
        let (parent, _) = path.rsplit_once('/').expect("a directory");
        assert!(directories.contains(parent), "{path}");
        assert!(path.len() < 1024);
        assert!(names.insert(path), "{file}");
    }
    assert!((0..one.files()).any(|file| one.size(file) != other.size(file)));
}

#[test]
fn leaf_directories_are_below_directories() {
    let spec =
        SetSpec { leaf_dirs: 5000, ..SetSpec::set("d", 0, Dist::fixed(100), Dist::fixed(0)) };
    let tree = tree(spec);
    assert_eq!((tree.leaf_dirs(), tree.files()), (5000, 0));
    let paths: HashSet<String> = (0..5000).map(|leaf| tree.leaf_dir_path(leaf)).collect();
    assert_eq!(paths.len(), 5000);
}

#[test]
fn one_file_is_below_the_folder() {
    let tree = tree(SetSpec::file("largefile1", Dist::fixed(1 << 30)));
    assert_eq!((tree.file_path(0), tree.size(0), tree.depth(0)), ("largefile1".into(), 1 << 30, 0));
    assert_eq!(tree.directories(), 0);
    assert!(!tree.exists(0), "nothing exists without prealloc");
}

#[test]
fn what_is_too_large_is_refused() {
    let refused = |spec| Tree::new(spec, 1).map(drop).expect_err("refused").to_string();
    let size = Dist::fixed(1);
    let wide = |width| SetSpec::set("s", 10_000_000, Dist::fixed(width), size.clone());
    assert!(refused(wide(1)).contains("dirwidth is 1"));
    let deep = SetSpec { dir_gamma: 0.0, depth: Some(Dist::fixed(60)), ..wide(2) };
    assert!(refused(deep).contains("increase dirwidth"));
    let many = SetSpec { entries: u64::MAX, ..wide(20) };
    assert!(refused(many).contains("at most 20000000"));
}
