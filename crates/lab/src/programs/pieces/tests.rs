//! Pieces of a range: their places, content that differs, ends and failures.

use super::*;
use crate::pattern::Content;

fn range() -> Range {
    Range { key: 5, offset: 100, len: 10_000, piece: 4_096 }
}

fn checker() -> Checker {
    Checker::new(Content::new(1), 1)
}

#[test]
fn what_is_written_in_pieces_is_what_is_read() {
    let (mut file, mut places, mut buffer) = (vec![0; 10_100], Vec::new(), Vec::new());
    let done = range().write(&checker(), &mut buffer, |at, bytes| {
        places.push((at, bytes.len()));
        file[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    });
    assert_eq!(done.unwrap().bytes, 10_000);
    assert_eq!(places, [(100, 4_096), (4_196, 4_096), (8_292, 1_808)]);
    let read = |file: &[u8], at: u64, bytes: &mut [u8]| {
        let got = bytes.len().min(file.len() - at as usize);
        bytes[..got].copy_from_slice(&file[at as usize..][..got]);
        Ok(got)
    };
    let all = range().read(&checker(), &mut buffer, |at, bytes| read(&file, at, bytes));
    assert_eq!(all.unwrap().bytes, 10_000);
    // A file that ends earlier.
    let short = range().read(&checker(), &mut buffer, |at, bytes| read(&file[..5_000], at, bytes));
    assert_eq!(short.unwrap().bytes, 4_900);
    file[9_000] ^= 1;
    let wrong = range().read(&checker(), &mut buffer, |at, bytes| read(&file, at, bytes));
    assert!(matches!(wrong, Err(CallError::Fault(Fault::Corrupt))));
}

#[test]
fn a_write_that_takes_nothing_is_an_error() {
    let short = range().write(&checker(), &mut Vec::new(), |_, _| Ok(0));
    assert!(matches!(short, Err(CallError::Fault(Fault::Short))));
}
