//! What is looked at is judged rightly, however the read is cut.

use super::*;

fn data(len: usize) -> (Content, Vec<u8>) {
    let content = Content::new(5);
    let mut data = vec![0; len];
    content.fill(1, 8192, &mut data);
    (content, data)
}

#[test]
fn right_content_passes_in_any_cut() {
    let (content, data) = data(1 << 20);
    for one_in in [0, 1, 16] {
        let checker = Checker::new(content.clone(), one_in);
        for cut in [1000, 4096, 65_537] {
            for (n, part) in data.chunks(cut).enumerate() {
                let at = (n * cut) as u64;
                assert!(checker.is_right(1, 8192, data.len() as u64, at, part), "{one_in} {cut}");
            }
        }
    }
}

#[test]
fn damage_at_either_end_is_always_seen() {
    let (content, mut data) = data(1 << 20);
    let checker = Checker::new(content, 16);
    let len = data.len();
    for at in [0, len - 1] {
        data[at] ^= 1;
        assert!(!checker.is_right(1, 8192, len as u64, 0, &data));
        data[at] ^= 1;
    }
}

#[test]
fn the_stated_share_is_about_what_is_seen() {
    let (content, mut data) = data(1 << 20);
    let checker = Checker::new(content, 16);
    let len = data.len() as u64;
    let mut seen = 0;
    for block in 0..256 {
        data[block * 4096 + 7] ^= 1;
        seen += u32::from(!checker.is_right(1, 8192, len, 0, &data));
        data[block * 4096 + 7] ^= 1;
    }
    let stated = checker.share(len) * 256.0;
    assert!((f64::from(seen) - stated).abs() <= 2.0, "seen {seen}, stated {stated}");
}

#[test]
fn a_small_read_is_checked_whole() {
    let (content, mut data) = data(4096);
    let checker = Checker::new(content, 16);
    assert_eq!(checker.share(4096), 1.0);
    for at in 0..4096 {
        data[at] ^= 1;
        assert!(!checker.is_right(1, 8192, 4096, 0, &data));
        data[at] ^= 1;
    }
}
