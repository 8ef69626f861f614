//! What a session lets a client do, in what order.

use wire::ftp::Verb;

use super::State;
use crate::{Settings, TlsUse};
use files::VPath;

fn path(text: &str) -> VPath {
    VPath::parse(text.as_bytes()).unwrap()
}

fn code(state: &State, verb: Verb, settings: &Settings) -> Option<u16> {
    state.gate(verb, true, settings).err().map(|answer| answer.code)
}

#[test]
fn commands_are_accepted_in_their_states() {
    let (mut state, open) = (State::default(), Settings::default());
    let strict = Settings { tls: TlsUse::Required, protect_data: true, ..Settings::default() };
    assert_eq!(code(&state, Verb::Retr, &open), Some(530));
    assert_eq!(code(&state, Verb::Stat, &open), Some(530));
    assert_eq!(state.gate(Verb::Stat, false, &open), Ok(()));
    assert_eq!(code(&state, Verb::User, &open), None);
    assert_eq!(code(&state, Verb::User, &strict), Some(530));
    state.secure = true;
    assert_eq!(code(&state, Verb::User, &strict), None);
    state.sign_in(VPath::ROOT, VPath::ROOT);
    assert_eq!(code(&state, Verb::Retr, &open), None);
    assert_eq!(code(&state, Verb::Retr, &strict), Some(521));
    assert_eq!(code(&state, Verb::Size, &strict), None);
    state.protect = true;
    assert_eq!(code(&state, Verb::Retr, &strict), None);
    state.epsv_all = true;
    assert_eq!(code(&state, Verb::Pasv, &open), Some(501));
    assert_eq!(code(&state, Verb::Epsv, &open), None);
}

#[test]
fn paths_stay_below_the_root() {
    let mut state = State::default();
    state.sign_in(path("/share/home"), path("/sub"));
    assert_eq!(state.resolve(b"x").unwrap(), path("/share/home/sub/x"));
    assert_eq!(state.resolve(b"/x").unwrap(), path("/share/home/x"));
    assert_eq!(state.resolve(b"../../../x").unwrap(), path("/share/home/x"));
    assert_eq!(state.shown(b"..").unwrap(), VPath::ROOT);
    assert!(state.resolve(b"a\0").is_err());
}

#[test]
fn what_holds_for_one_command_and_what_is_forgotten() {
    let mut state = State { rest: 5, renaming: Some(VPath::ROOT), ..State::default() };
    state.enter(Verb::Rnto);
    assert!(state.renaming.is_some());
    state.enter(Verb::Noop);
    assert!(state.renaming.is_none());
    assert_eq!((state.take_rest(), state.take_rest()), (5, 0));
    (state.secure, state.protect) = (true, true);
    assert!(!state.count_wrong(2) && state.count_wrong(2));
    state.sign_out();
    assert!(state.secure && state.protect && state.wrong == 2);
    state.reinitialize();
    assert!(state.secure && !state.protect && state.wrong == 2, "a REIN forgives nothing");
}
