//! Only NTLM version 2 is taken, and every other answer counts as a wrong password.

use std::time::Duration;

use base::limits::SIGN_IN_NAME_FREE_FAILURES;
use e2e::api::wait_for;
use e2e::patience;
use e2e::smb::scene::{NODE, PASSWORD, SHARE, Scene, USER};
use e2e::smb::sign_in::Proof;
use e2e::smb::{Ask, Offer, Protection, Smb, new_name};
use e2e::tcp::address;
use serde_json::json;
use wire::smb::class::file_class;
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

/// Answers that are no proof.
const NO_PROOFS: [Proof; 6] = [
    Proof::V1,
    Proof::LanManager,
    Proof::Empty,
    Proof::Anonymous,
    Proof::V2OfNothing,
    Proof::V2Altered,
];

fn try_in(scene: &Scene, from: u8, dialect: Dialect, proof: Proof) -> NtStatus {
    let mut smb = Smb::connect(address(from), scene.at(), &Offer::only(dialect)).expect("SMB");
    smb.sign_in_by(proof, USER, PASSWORD, 0).expect("an answer")
}

#[test]
fn older_and_empty_answers_are_refused() {
    for dialect in Dialect::SERVED {
        // A server each: wrong passwords for a name are limited, too, in all of its dialects.
        let scene = Scene::new("smb-proofs", &[]);
        let mut from = 10;
        for proof in NO_PROOFS {
            // One address each, so that none has to wait for another.
            from += 1;
            let status = try_in(&scene, from, dialect, proof);
            assert_eq!(status, NtStatus::LOGON_FAILURE, "{dialect:?} {proof:?}");
        }
        assert_eq!(try_in(&scene, 200, dialect, Proof::V2), NtStatus::SUCCESS, "{dialect:?}");
        scene.wait_for_state(0, 0);
    }
}

#[test]
fn each_of_them_counts_as_a_wrong_password() {
    let scene = Scene::new("smb-throttle", &[]);
    for (number, proof) in (1..).zip(NO_PROOFS) {
        let from = 20 + number;
        let mut guesses = 0;
        wait_for("a wait", patience(60), || {
            guesses += 1;
            let status = try_in(&scene, from, Dialect::SMB311, proof);
            assert!(guesses < 1_000, "{proof:?} is not counted");
            (status == NtStatus::ACCOUNT_LOCKED_OUT).then_some(())
        });
        // The right password has to wait there, too, and nowhere else.
        assert_eq!(try_in(&scene, from, Dialect::SMB311, Proof::V2), NtStatus::ACCOUNT_LOCKED_OUT);
    }
    // The name has to wait, too; but not for a client that has signed in before.
    let ends = Duration::from_secs(60);
    wait_for("the end of the wait", ends, || {
        (try_in(&scene, 250, Dialect::SMB311, Proof::V2) == NtStatus::SUCCESS).then_some(())
    });
}

#[test]
fn a_name_is_the_same_in_any_letters() {
    let scene = Scene::new("smb-letters", &[]);
    let spelled = |number: u32| -> String {
        let letter = |(at, one): (usize, char)| match number >> at & 1 {
            0 => one,
            _ => one.to_ascii_uppercase(),
        };
        USER.chars().enumerate().map(letter).collect()
    };
    // One address each: only the name is counted.
    for number in 0..=SIGN_IN_NAME_FREE_FAILURES {
        let offer = Offer::default();
        let from = address(20 + number as u8);
        let mut smb = Smb::connect(from, scene.at(), &offer).expect("SMB");
        let status = smb.sign_in(&spelled(number), "wrong").expect("an answer");
        let waits = number == SIGN_IN_NAME_FREE_FAILURES;
        let wanted = if waits { NtStatus::ACCOUNT_LOCKED_OUT } else { NtStatus::LOGON_FAILURE };
        assert_eq!(status, wanted, "{number}: {}", spelled(number));
    }
}

#[test]
fn a_session_that_becomes_anonymous_has_what_is_open_and_opens_nothing() {
    let scene = Scene::new("smb-anonymous", &[]);
    for dialect in Dialect::SERVED {
        let mut smb = scene.anna_from(address(8), &Offer::only(dialect)).expect("let in");
        let name = format!("{dialect:?}");
        let file = smb.create(&Ask::make(&name)).expect("an answer").expect("a file");
        let anonymous = smb.sign_in_again(Proof::Anonymous, ("", "")).expect("an answer");
        assert_eq!(anonymous, NtStatus::SUCCESS, "{dialect:?}");
        let written = smb.write(file, 0, b"data", 0).expect("an answer");
        assert_eq!(written, NtStatus::SUCCESS, "{dialect:?}");
        let other = smb.create(&Ask::make("other")).expect("an answer");
        assert_eq!(other.err(), Some(NtStatus::ACCESS_DENIED), "{dialect:?}");
        let renamed = smb.set(file, file_class::RENAME, &new_name("renamed", false));
        assert_eq!(renamed.expect("an answer"), NtStatus::ACCESS_DENIED, "{dialect:?}");
        let again = smb.sign_in_again(Proof::V2, (USER, PASSWORD)).expect("an answer");
        assert_eq!(again, NtStatus::SUCCESS, "{dialect:?}");
        let name = format!("other-{dialect:?}");
        let other = smb.create(&Ask::make(&name)).expect("an answer").expect("a file");
        smb.close(other).expect("an answer");
        smb.close(file).expect("an answer");
    }
    // An attempt as another user still ends the session: the refusal has the signature of the
    // request, since there is no session any more to sign it, and this client takes none of those.
    let mut smb = scene.anna().expect("let in");
    let refused = smb.sign_in_again(Proof::V2, ("nobody", "nothing"));
    assert!(refused.is_err(), "{refused:?}");
    let other = smb.create(&Ask::make("as-another")).map(|answer| answer.is_ok());
    assert!(!other.is_ok_and(|made| made));
}

#[test]
fn a_session_without_a_name_has_no_share() {
    let permit = json!({"set": NODE, "property": "anonymous", "value": true});
    let scene = Scene::new("smb-nobody", &[permit]);
    for dialect in Dialect::SERVED {
        let mut smb = Smb::connect(address(8), scene.at(), &Offer::only(dialect)).expect("SMB");
        // What every client could sign is not signed.
        smb.trusts = true;
        let status = smb.sign_in_by(Proof::Anonymous, "", "", 0).expect("an answer");
        assert_eq!(status, NtStatus::SUCCESS, "{dialect:?}");
        let share = smb.connect_tree(SHARE).expect("an answer");
        assert_eq!(share.err(), Some(NtStatus::ACCESS_DENIED), "{dialect:?}");
        for protection in [Protection::Signed, Protection::None] {
            smb.protection = protection;
            let pipes = smb.connect_tree("IPC$").expect("an answer");
            assert!(pipes.is_ok(), "{dialect:?} {protection:?}: {pipes:?}");
        }
        let pipe = smb.create(&Ask::open("srvsvc")).expect("an answer");
        assert_eq!(pipe.err(), Some(NtStatus::ACCESS_DENIED), "{dialect:?}");
        if dialect >= Dialect::SMB300 {
            smb.protection = Protection::Sealed;
            assert!(smb.echo().is_err(), "{dialect:?}: nothing is decrypted for nobody");
        }
    }
    scene.wait_for_state(0, 0);
}
