//! Join codes: their form, their proofs, and how often and how long they are valid.

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn binding() -> Binding {
    Binding { exporter: [1; 32], listener: peer(2), caller: peer(3) }
}

fn peer(number: u8) -> Fingerprint {
    Fingerprint([number; 32])
}

fn folder() -> PathBuf {
    let name = format!("plimsoll-code-{:016x}", SystemRandom.next_u64());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn codes_have_a_hundred_random_bits_and_are_not_shown() {
    let (one, other) = (JoinCode::made(), JoinCode::made());
    assert_ne!(one, other);
    let bits = LAB_CODE_LETTERS as u32 * LETTERS.len().ilog2();
    assert!(bits >= 80, "{bits}");
    assert!(!format!("{one:?}").contains(&one.text()[..5]));
    let read = JoinCode::parse(&one.text()).unwrap();
    assert_eq!(read, one);
}

#[test]
fn a_code_is_read_as_people_write_it() {
    let code = JoinCode::parse("01234-56789-ABCDE-FGHJK").unwrap();
    for text in ["0123456789abcdefghjk", "O1234-56789-abcde-FGHJK", "0i234-56789-abcde-fghjk"] {
        assert_eq!(JoinCode::parse(text).as_ref(), Some(&code), "{text}");
    }
    for text in ["", "01234", "01234-56789-ABCDE-FGHJU", "01234-56789-ABCDE-FGHJK-0", "ä"] {
        assert_eq!(JoinCode::parse(text), None, "{text}");
    }
}

#[test]
fn a_proof_is_of_one_code_one_side_and_one_connection() {
    let (code, other) = (JoinCode::made(), JoinCode::made());
    let proof = code.proof(Role::Agent, &binding());
    assert!(code.proves(Role::Agent, &binding(), &proof));
    assert!(!other.proves(Role::Agent, &binding(), &proof));
    // Sent back by the other side it proves nothing.
    assert!(!code.proves(Role::Controller, &binding(), &proof));
    for wrong in [
        Binding { exporter: [9; 32], ..binding() },
        Binding { listener: peer(9), ..binding() },
        Binding { caller: peer(9), ..binding() },
    ] {
        assert!(!code.proves(Role::Agent, &wrong, &proof));
    }
    assert!(!code.proves(Role::Agent, &binding(), &proof[..31]));
    assert!(!code.proves(Role::Agent, &binding(), &[]));
}

/// What a peer with this code gets.
fn redeem(codes: &mut Codes, now: u64, of: u8, code: &JoinCode) -> Result<(), CodeRefusal> {
    codes.redeem(now, peer(of), |own| own == code).map(drop).map_err(|(why, _)| why)
}

#[test]
fn a_code_admits_as_many_as_it_may_and_recognises_them_later() {
    let (code, now) = (JoinCode::made(), monotonic_ns());
    let mut codes = Codes::new(code.clone(), 2, HOUR, false);
    assert_eq!(redeem(&mut codes, now, 1, &JoinCode::made()), Err(CodeRefusal::Wrong));
    assert_eq!(redeem(&mut codes, now, 1, &code), Ok(()));
    // The same peer again is not another one.
    assert_eq!(redeem(&mut codes, now, 1, &code), Ok(()));
    assert_eq!(redeem(&mut codes, now, 2, &code), Ok(()));
    assert!(codes.used_up());
    assert_eq!(redeem(&mut codes, now, 3, &code), Err(CodeRefusal::Used));
    // Those that were admitted return, however late, and only with the code that admitted them.
    assert_eq!(redeem(&mut codes, now + 2 * ns(HOUR), 2, &code), Ok(()));
    assert_eq!(redeem(&mut codes, now, 2, &JoinCode::made()), Err(CodeRefusal::Wrong));
    assert_eq!(codes.admitted().collect::<Vec<_>>(), [peer(1), peer(2)]);
}

#[test]
fn a_code_expires_and_the_next_one_is_shown() {
    let (code, now) = (JoinCode::made(), monotonic_ns());
    let mut codes = Codes::new(code.clone(), 1, HOUR, true);
    let late = now + ns(HOUR) + 1_000_000_000;
    let (why, next) = codes.redeem(late, peer(1), |own| *own == code).err().unwrap();
    assert_eq!(why, CodeRefusal::Expired);
    let next = next.expect("the next code");
    assert_eq!(redeem(&mut codes, late, 1, &code), Err(CodeRefusal::Expired));
    let redeemed = codes.redeem(late, peer(1), |own| *own == next).ok().unwrap();
    assert!(redeemed.code == next && redeemed.renewed.is_some_and(|newest| newest != next));
    assert_eq!(redeem(&mut codes, late, 2, &next), Err(CodeRefusal::Used));
}

#[test]
fn what_is_retained_has_a_limit() {
    let now = monotonic_ns();
    let mut code = JoinCode::made();
    let mut codes = Codes::new(code.clone(), 1, HOUR, true);
    for n in 0..4 * LAB_CODES_RETAINED {
        let redeemed = codes.redeem(now, peer(n as u8), |own| *own == code).ok().unwrap();
        code = redeemed.renewed.unwrap();
    }
    assert_eq!(codes.retired.len(), LAB_CODES_RETAINED);
    assert_eq!(codes.admitted.len(), LAB_CODES_RETAINED);
}

#[test]
fn a_file_has_a_code_for_all_or_one_for_each() {
    let folder = folder();
    let file = folder.join("codes");
    let (one, other) = (JoinCode::made(), JoinCode::made());
    std::fs::write(&file, format!("# of today\n a:2150 {}\n\n{}\n", one.text(), other.text()))
        .unwrap();
    let codes = CodeFile::read(&file).unwrap();
    assert_eq!(codes.code("a:2150").unwrap(), one);
    assert_eq!(codes.code("b:2150").unwrap(), other);
    std::fs::write(&file, format!("a:2150 {}\n", one.text())).unwrap();
    let codes = CodeFile::read(&file).unwrap();
    assert!(matches!(codes.code("b:2150"), Err(CodeError::Missing(..))));
    std::fs::write(&file, "\nthe secret\n").unwrap();
    let error = CodeFile::read(&file).unwrap_err();
    assert!(matches!(error, CodeError::Form(_, 2)) && !error.to_string().contains("secret"));
    std::fs::write(&file, "\n").unwrap();
    assert!(CodeFile::read(&file).is_err());
    assert!(matches!(CodeFile::read(&folder.join("none")), Err(CodeError::Read(..))));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_listener_reads_its_code_or_writes_one_that_only_its_user_reads() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let file = folder.join("code");
    let made = ListenerCode::new(Some(&file)).unwrap();
    assert!(made.made && made.written.as_deref() == Some(&*file));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let read = ListenerCode::new(Some(&file)).unwrap();
    assert!(!read.made && read.code == made.code && read.written.is_none());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no draft is left");
    std::fs::remove_dir_all(&folder).unwrap();
}
