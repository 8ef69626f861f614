//! Rebuilds this crate when the built browser interface appears or changes: the macro that embeds
//! it only notices changes of files that it has already seen.

fn main() {
    println!("cargo:rerun-if-changed=../../ui/dist");
}
