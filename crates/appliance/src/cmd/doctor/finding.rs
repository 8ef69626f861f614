//! One thing looked for, and how it turned out.

use std::io::{Error, ErrorKind};

use serde::Serialize;

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

/// One thing looked for.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Its name.
    pub id: &'static str,
    /// Whether serving uses it. What only other commands or later versions use is told, too.
    pub used: bool,
    /// Whether it only adds to what clients may do: without it everything else is as good.
    #[serde(skip)]
    pub optional: bool,
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

impl Finding {
    /// Something that serving uses, not tried yet.
    pub fn new(
        id: &'static str,
        sentence: &'static str,
        instead: &'static str,
        advice: &'static str,
    ) -> Self {
        let (state, found) = (State::Unknown, String::new());
        Self { id, used: true, optional: false, state, found, sentence, instead, advice }
    }

    /// The same, for what serving does not use in this version.
    pub fn not_used(self) -> Self {
        Self { used: false, ..self }
    }

    /// The same, for what many file systems lack and only some clients ask for.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// There or not, with what was found.
    pub fn is(self, there: bool, found: impl Into<String>) -> Self {
        Self { state: if there { State::Yes } else { State::No }, found: found.into(), ..self }
    }

    /// Could not be tried.
    pub fn unknown(self, found: impl Into<String>) -> Self {
        Self { state: State::Unknown, found: found.into(), ..self }
    }

    /// As a trial turned out.
    pub fn tried(self, result: std::io::Result<()>) -> Self {
        match result {
            Ok(()) => self.is(true, "works"),
            Err(e) => self.is(false, why_not(&e)),
        }
    }

    /// Present or absent.
    pub fn present(self, there: bool) -> Self {
        self.is(there, if there { "present" } else { "absent" })
    }

    /// Whether the machine serves worse for the lack of it.
    pub fn degrades(&self) -> bool {
        self.used && !self.optional && self.state == State::No
    }
}

/// The reason in words.
pub fn why_not(error: &Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "not allowed for this user".into(),
        // A protocol or module that the kernel would have to load is not found.
        ErrorKind::Unsupported | ErrorKind::NotFound => {
            "this kernel or file system does not have it".into()
        }
        _ if error.raw_os_error() == Some(libc::ENOSYS) => "this kernel does not have it".into(),
        _ => error.to_string(),
    }
}
