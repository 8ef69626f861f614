//! One thing to look for, and how it turned out.

use std::io::{Error, ErrorKind, Result};

use serde::Serialize;

use super::Target;

/// How it turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there.
    Yes,
    /// It is not.
    No,
    /// It could not be tried.
    Unknown,
}

/// What was found, and how to get it if that depends on what was found.
pub struct Outcome(pub State, pub String, pub Option<&'static str>);

impl Outcome {
    /// There or not, with what was found.
    pub fn is(there: bool, found: impl Into<String>) -> Self {
        Self(if there { State::Yes } else { State::No }, found.into(), None)
    }

    /// Could not be tried.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self(State::Unknown, why.into(), None)
    }

    /// As a trial turned out.
    pub fn tried(result: Result<()>) -> Self {
        match result {
            Ok(()) => Self::is(true, "works"),
            Err(e) => Self::is(false, why_not(&e)),
        }
    }

    /// Present or absent.
    pub fn present(there: bool) -> Self {
        Self::is(there, if there { "present" } else { "absent" })
    }
}

/// What needs the result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Serving does.
    Serving,
    /// Some clients do, where a file system has it; without it everything else is as good.
    SomeClients,
    /// Other commands or later versions do.
    Optional,
}

/// Something to look for.
pub struct Check {
    /// Its name.
    pub id: &'static str,
    /// What needs it.
    pub used: Use,
    /// What it is good for.
    pub sentence: &'static str,
    /// What is used without it.
    pub instead: &'static str,
    /// How to get it.
    pub advice: &'static str,
    /// Looks for it.
    pub look: fn(&Target<'_>) -> Outcome,
}

impl Check {
    /// Without words.
    pub const fn new(id: &'static str, used: Use, look: fn(&Target<'_>) -> Outcome) -> Self {
        Self { id, used, sentence: "", instead: "", advice: "", look }
    }

    /// The same, with what it is good for.
    pub const fn good_for(self, sentence: &'static str) -> Self {
        Self { sentence, ..self }
    }

    /// The same, with what is used without it.
    pub const fn instead(self, instead: &'static str) -> Self {
        Self { instead, ..self }
    }

    /// The same, with how to get it.
    pub const fn advice(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }

    /// Looks for it here.
    pub fn finding(&self, place: &Target<'_>) -> Finding {
        let Self { id, used, sentence, instead, advice, look } = *self;
        let Outcome(state, found, how) = look(place);
        let (degrades, advice) =
            (used == Use::Serving && state == State::No, how.unwrap_or(advice));
        let used = used != Use::Optional;
        Finding { id, used, degrades, state, found, sentence, instead, advice }
    }
}

/// One thing looked for.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Its name.
    pub id: &'static str,
    /// Whether serving uses it.
    pub used: bool,
    /// Whether the machine serves worse for the lack of it.
    #[serde(skip)]
    pub degrades: bool,
    /// How it turned out.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What it is good for.
    pub sentence: &'static str,
    /// What is used without it.
    pub instead: &'static str,
    /// How to get it.
    pub advice: &'static str,
}

/// The reason in words.
pub fn why_not(error: &Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "not permitted for this user".into(),
        // A protocol or module that the kernel would have to load is not found.
        ErrorKind::Unsupported | ErrorKind::NotFound => {
            "not supported by this kernel or file system".into()
        }
        _ if error.raw_os_error() == Some(libc::ENOSYS) => "not supported by this kernel".into(),
        _ => error.to_string(),
    }
}
