//! The one-time join code, by which a controller and its agents recognise each other the first
//! time: made by the side that listens, read by the other one from a file. It is never an argument,
//! which every user of the machine can read, and never sent: what is sent are proofs
//! (docs/decisions/join-code.md).

use super::binding::{Binding, Fingerprint};
use aws_lc_rs::hmac;
use base::clock::monotonic_ns;
use base::limits::{LAB_CODE_FILE_MAX, LAB_CODE_LETTERS, LAB_CODES_RETAINED};
use base::random::{Random, SystemRandom};
use std::collections::VecDeque;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable with the name of a file with join codes, unless `--code-file` is given.
/// Agents that are started by a run do not inherit it.
pub const CODE_FILE_ENV: &str = "PLIMSOLL_AGENT_CODE_FILE";

/// Crockford's letters: none looks like another one.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Letters between two dashes.
const GROUP: usize = 5;
/// What the key of proofs is derived with.
const KEY_LABEL: &[u8] = b"plimsoll lab agent join code 1";

/// Why there is no join code.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The file cannot be read.
    #[error("cannot read the join code from {0}")]
    Read(PathBuf, #[source] io::Error),
    /// The file cannot be written.
    #[error("cannot write the join code to {0}")]
    Write(PathBuf, #[source] io::Error),
    /// It has something else.
    #[error("{0}, line {1}: expected a join code, or HOST:PORT and a join code")]
    Form(PathBuf, usize),
    /// It has no line for an agent.
    #[error("{0} has no join code for the agent at {1}")]
    Missing(PathBuf, String),
    /// No file is given.
    #[error(
        "a join code is required: write the one that the other side prints to a file and add \
         --code-file FILE"
    )]
    None,
}

/// Which side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The controller.
    Controller,
    /// The agent.
    Agent,
}

/// A join code. It is not shown by `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinCode(String);

impl fmt::Debug for JoinCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinCode(…)")
    }
}

impl JoinCode {
    /// A new one.
    pub fn made() -> Self {
        let mut bytes = [0; LAB_CODE_LETTERS];
        SystemRandom.fill(&mut bytes);
        Self(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
    }

    /// Reads one, with or without dashes, in capitals or not; letters that look like another one
    /// are that one.
    pub fn parse(text: &str) -> Option<Self> {
        let letter = |letter: u8| match letter.to_ascii_uppercase() {
            b'O' => b'0',
            b'I' | b'L' => b'1',
            other => other,
        };
        let letters: Vec<u8> = text.bytes().filter(|b| *b != b'-').map(letter).collect();
        let valid =
            letters.len() == LAB_CODE_LETTERS && letters.iter().all(|b| LETTERS.contains(b));
        valid.then(|| Self(letters.into_iter().map(char::from).collect()))
    }

    /// The text, for its owner.
    pub fn text(&self) -> String {
        let groups = self.0.as_bytes().chunks(GROUP).map(String::from_utf8_lossy);
        groups.collect::<Vec<_>>().join("-")
    }

    /// What shows that one side of a connection has the code.
    pub fn proof(&self, of: Role, binding: &Binding) -> Vec<u8> {
        hmac::sign(&self.key(), &message(of, binding)).as_ref().to_vec()
    }

    /// Whether a proof is right, in a time that does not depend on it.
    pub fn proves(&self, of: Role, binding: &Binding, proof: &[u8]) -> bool {
        hmac::verify(&self.key(), &message(of, binding), proof).is_ok()
    }

    fn key(&self) -> hmac::Key {
        let label = hmac::Key::new(hmac::HMAC_SHA256, KEY_LABEL);
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&label, self.0.as_bytes()).as_ref())
    }
}

fn message(of: Role, binding: &Binding) -> Vec<u8> {
    let role: &[u8] = match of {
        Role::Controller => b"controller",
        Role::Agent => b"agent",
    };
    [role, &[0], &binding.exporter, &binding.listener.0, &binding.caller.0].concat()
}

/// The file that is given, or that the environment names.
pub fn file_given(file: Option<&Path>) -> Option<PathBuf> {
    let named = || std::env::var_os(CODE_FILE_ENV).filter(|name| !name.is_empty());
    file.map(Path::to_owned).or_else(|| named().map(PathBuf::from))
}

/// The lines of a file with join codes: for each address, or for all.
#[derive(Debug, Clone)]
pub struct CodeFile {
    file: PathBuf,
    lines: Vec<(Option<String>, JoinCode)>,
}

impl CodeFile {
    /// Reads a file, or standard input if it is `-`.
    ///
    /// # Errors
    /// [`CodeError`]
    pub fn read(file: &Path) -> Result<Self, CodeError> {
        let fail = |e| CodeError::Read(file.to_owned(), e);
        let from: Box<dyn Read> = if file == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(file).map_err(fail)?)
        };
        let mut text = String::new();
        from.take(LAB_CODE_FILE_MAX).read_to_string(&mut text).map_err(fail)?;
        let used = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| used(line));
        let read = |(number, line): (usize, &str)| {
            let (address, code) = match line.rsplit_once(char::is_whitespace) {
                Some((address, code)) => (Some(address.trim().to_owned()), code),
                None => (None, line),
            };
            let code = JoinCode::parse(code);
            code.map(|code| (address, code))
                .ok_or_else(|| CodeError::Form(file.to_owned(), number + 1))
        };
        let lines = lines.map(read).collect::<Result<Vec<_>, _>>()?;
        if lines.is_empty() {
            return Err(CodeError::Form(file.to_owned(), 1));
        }
        Ok(Self { file: file.to_owned(), lines })
    }

    /// The code for an address: its own line, or else the one without address.
    ///
    /// # Errors
    /// [`CodeError::Missing`]
    pub fn code(&self, address: &str) -> Result<JoinCode, CodeError> {
        let of = |wanted: Option<&str>| {
            self.lines.iter().find(|(at, _)| at.as_deref() == wanted).map(|(_, code)| code.clone())
        };
        let missing = || CodeError::Missing(self.file.clone(), address.to_owned());
        of(Some(address)).or_else(|| of(None)).ok_or_else(missing)
    }
}

/// Why a proof is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeRefusal {
    /// It is of no code of this listener.
    Wrong,
    /// The code has admitted as many peers as it may.
    Used,
    /// The time of the code is over.
    Expired,
}

/// The join codes of a listener, and the peers that they have admitted.
pub struct Codes {
    current: Option<JoinCode>,
    /// Valid until then, ns of [`monotonic_ns`].
    until_ns: u64,
    /// Peers that the current one may still admit.
    left: u32,
    uses: u32,
    life: Duration,
    /// Whether a used or expired one is replaced: its owner reads the new one.
    renews: bool,
    retired: VecDeque<(JoinCode, CodeRefusal)>,
    admitted: VecDeque<(Fingerprint, JoinCode)>,
    admitted_max: usize,
}

/// A peer that was recognised.
pub struct Redeemed {
    /// The code by which the listener proves itself to it.
    pub code: JoinCode,
    /// The code that replaces it, to be shown to the owner.
    pub renewed: Option<JoinCode>,
}

impl Codes {
    /// A code that admits `uses` peers within `life`. `renews`: a new one follows it.
    pub fn new(code: JoinCode, uses: u32, life: Duration, renews: bool) -> Self {
        Self {
            current: Some(code),
            until_ns: monotonic_ns().saturating_add(ns(life)),
            left: uses,
            uses,
            life,
            renews,
            retired: VecDeque::new(),
            admitted: VecDeque::new(),
            admitted_max: LAB_CODES_RETAINED.max(uses as usize),
        }
    }

    /// Whether the current code can admit no more peers.
    pub fn used_up(&self) -> bool {
        self.current.is_none()
    }

    /// Certificates of the peers that were admitted, in their order.
    pub fn admitted(&self) -> impl Iterator<Item = Fingerprint> {
        self.admitted.iter().map(|(peer, _)| *peer)
    }

    /// Whether a peer proves a code of this listener, be it used or expired.
    pub fn recognises(&self, proves: impl Fn(&JoinCode) -> bool) -> bool {
        let retired = self.retired.iter().map(|(code, _)| code);
        let admitted = self.admitted.iter().map(|(_, code)| code);
        self.current.iter().chain(retired).chain(admitted).any(proves)
    }

    /// Admits a peer that proves one of the codes at `now_ns` of [`monotonic_ns`]; `proves` returns
    /// whether it proves a given code. A peer with a certificate that was admitted before is
    /// recognised by it, however old the code is.
    ///
    /// # Errors
    /// [`CodeRefusal`], and the code that follows one that has just expired.
    pub fn redeem(
        &mut self,
        now_ns: u64,
        peer: Fingerprint,
        proves: impl Fn(&JoinCode) -> bool,
    ) -> Result<Redeemed, (CodeRefusal, Option<JoinCode>)> {
        let admitted = self.admitted.iter().find(|(own, code)| *own == peer && proves(code));
        if let Some((_, code)) = admitted {
            return Ok(Redeemed { code: code.clone(), renewed: None });
        }
        if let Some((_, why)) = self.retired.iter().find(|(code, _)| proves(code)) {
            return Err((*why, None));
        }
        let Some(code) = self.current.clone().filter(|code| proves(code)) else {
            return Err((CodeRefusal::Wrong, None));
        };
        if now_ns >= self.until_ns {
            return Err((CodeRefusal::Expired, self.retire(now_ns, CodeRefusal::Expired)));
        }
        if self.admitted.len() >= self.admitted_max {
            self.admitted.pop_front();
        }
        self.admitted.push_back((peer, code.clone()));
        self.left = self.left.saturating_sub(1);
        let renewed = if self.left == 0 { self.retire(now_ns, CodeRefusal::Used) } else { None };
        Ok(Redeemed { code, renewed })
    }

    /// Ends the current code; the next one, if there is to be one.
    fn retire(&mut self, now_ns: u64, why: CodeRefusal) -> Option<JoinCode> {
        let next = self.renews.then(JoinCode::made);
        if let Some(old) = std::mem::replace(&mut self.current, next.clone()) {
            self.retired.push_back((old, why));
        }
        if self.retired.len() > LAB_CODES_RETAINED {
            self.retired.pop_front();
        }
        (self.until_ns, self.left) = (now_ns.saturating_add(ns(self.life)), self.uses);
        next
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The code of a listener: of the file if there is one, else a new one.
pub struct ListenerCode {
    /// The code.
    pub code: JoinCode,
    /// Whether it is new.
    pub made: bool,
    /// The file that it was written to.
    pub written: Option<PathBuf>,
}

impl ListenerCode {
    /// Reads the code from `file`; makes one if there is no file, and writes it there if one is
    /// named.
    ///
    /// # Errors
    /// [`CodeError`]
    pub fn new(file: Option<&Path>) -> Result<Self, CodeError> {
        let Some(file) = file else {
            return Ok(Self { code: JoinCode::made(), made: true, written: None });
        };
        if file == Path::new("-") || file.exists() {
            let code = CodeFile::read(file)?.code("")?;
            return Ok(Self { code, made: false, written: None });
        }
        let code = JoinCode::made();
        // Complete under its name at once: agents may be waiting for it.
        let draft = file.with_extension(format!("new-{:016x}", SystemRandom.next_u64()));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut to = options.write(true).create_new(true).mode(0o600).open(&draft)?;
            to.write_all(format!("{}\n", code.text()).as_bytes())?;
            std::fs::hard_link(&draft, file)
        };
        let written = write();
        let _absent = std::fs::remove_file(&draft);
        written.map_err(|e| CodeError::Write(file.to_owned(), e))?;
        Ok(Self { code, made: true, written: Some(file.to_owned()) })
    }
}

#[cfg(test)]
mod tests;
