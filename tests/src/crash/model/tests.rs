//! The model accepts what a crash may leave and refuses what it must not.

use super::*;

fn bytes(versions: &[u64]) -> Vec<u8> {
    versions.iter().flat_map(|v| content(*v)).collect()
}

fn file() -> File {
    File::new(vec![1], 0o640, Nfstime3::default())
}

#[test]
fn a_stable_write_must_be_there() {
    let mut file = file();
    file.writing(0, &[7, 8]);
    assert!(file.compare(&[]).is_ok(), "not acknowledged: nothing promised");
    assert!(file.compare(&bytes(&[7, 8])).is_ok(), "but it may have happened");
    file.written(0, &[7, 8], true);
    assert!(file.compare(&bytes(&[7, 8])).is_ok());
    assert!(file.compare(&[]).is_err());
    assert!(file.compare(&bytes(&[7, 0])).is_err());
}

#[test]
fn an_unstable_write_must_be_there_after_its_commit() {
    let mut file = file();
    file.writing(0, &[7]);
    file.written(0, &[7], true);
    file.writing(0, &[9, 10]);
    file.written(0, &[9, 10], false);
    for possible in [&[7][..], &[9], &[9, 10], &[7, 10]] {
        assert!(file.compare(&bytes(possible)).is_ok(), "{possible:?}");
    }
    file.committed();
    assert!(file.compare(&bytes(&[9, 10])).is_ok());
    for lost in [&[7][..], &[9], &[7, 10]] {
        assert!(file.compare(&bytes(lost)).is_err(), "{lost:?}");
    }
}

#[test]
fn a_truncation_must_have_happened() {
    let mut file = file();
    file.writing(0, &[1, 2, 3]);
    file.written(0, &[1, 2, 3], true);
    file.truncating(1);
    assert!(file.compare(&bytes(&[1, 2, 3])).is_ok());
    assert!(file.compare(&bytes(&[1])).is_ok());
    file.truncated(1);
    assert!(file.compare(&bytes(&[1])).is_ok());
    assert!(file.compare(&bytes(&[1, 2, 3])).is_err());
}
