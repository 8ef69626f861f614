//! Contexts of durable handles: bytes as MS-SMB2 has them, and lengths that are refused.

use super::*;

#[test]
fn contexts_are_as_in_the_specification() {
    let mut out = Vec::new();
    let asked = DurableV2 { timeout_ms: 30_000, flags: PERSISTENT, reserved: 0, guid: [5; 16] };
    asked.put(&mut out);
    assert_eq!(out.get(..8), Some(&[0x30, 0x75, 0, 0, 2, 0, 0, 0][..]));
    assert_eq!((out.len(), DurableV2::decode(&out)), (32, Ok(asked)));
    out.clear();
    let file = FileId { persistent: 1, volatile: 2 };
    let again = ReconnectV2 { file, guid: [6; 16], flags: 0 };
    again.put(&mut out);
    assert_eq!((out.len(), ReconnectV2::decode(&out)), (36, Ok(again)));
    assert_eq!(out.get(..16).map(reconnect_v1), Some(Ok(file)));
    out.clear();
    let answer = DurableV2Answer { timeout_ms: 300_000, flags: 0 };
    answer.put(&mut out);
    assert_eq!((out.len(), DurableV2Answer::decode(&out)), (8, Ok(answer)));
}

#[test]
fn contexts_of_applications_are_as_in_the_specification() {
    let mut out = Vec::new();
    let instance = AppInstance::new([7; 16]);
    instance.put(&mut out);
    assert_eq!(out.get(..5), Some(&[20, 0, 0, 0, 7][..]));
    assert_eq!((out.len(), AppInstance::decode(&out)), (20, Ok(instance)));
    out.clear();
    let version = AppVersion::new(1, 2);
    version.put(&mut out);
    assert_eq!(out.get(..9), Some(&[24, 0, 0, 0, 0, 0, 0, 0, 1][..]));
    assert_eq!((out.len(), AppVersion::decode(&out)), (24, Ok(version)));
}

#[test]
fn other_lengths_are_refused() {
    for length in 0..64 {
        let data = vec![0; length];
        assert_eq!(DurableV2::decode(&data).is_ok(), length == 32);
        assert_eq!(ReconnectV2::decode(&data).is_ok(), length == 36);
        assert_eq!(DurableV2Answer::decode(&data).is_ok(), length == 8);
        assert_eq!(AppInstance::decode(&data).is_ok(), length == 20);
        assert_eq!(AppVersion::decode(&data).is_ok(), length == 24);
        assert_eq!(reconnect_v1(&data).is_ok(), length == 16);
        assert_eq!(check_v1(&data).is_ok(), length == 16);
    }
}
