//! What a control connection remembers. Pure: no sockets, no files, no clock.

use vfs::status::Status;
use wire::ftp::Verb;
use wire::ftp::facts::Facts;
use wire::ftp::request::Type;

use super::answer::Answer;
use super::settings::{Settings, TlsUse};
use files::VPath;

/// Algorithms of HASH, the first unless another is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Algorithm {
    #[default]
    Sha256,
    Sha512,
    Sha1,
}

impl Algorithm {
    pub(super) const ALL: [Self; 3] = [Self::Sha256, Self::Sha512, Self::Sha1];

    /// Its name in the IANA registry of hash function textual names.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
            Self::Sha1 => "SHA-1",
        }
    }
}

/// Everything that commands set and later ones depend on.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The name given by USER, until PASS.
    pub(super) user: Option<Vec<u8>>,
    pub(super) signed_in: bool,
    pub(super) wrong: u32,
    /// Commands are protected by TLS.
    pub(super) secure: bool,
    /// PBSZ has come, as it must before PROT (RFC 4217 §9).
    pub(super) sized: bool,
    /// Data is protected.
    pub(super) protect: bool,
    pub(super) data_type: Type,
    /// Where the next transfer begins.
    pub(super) rest: u64,
    /// What RNFR has named.
    pub(super) renaming: Option<VPath>,
    /// Only EPSV opens data connections from now on.
    pub(super) epsv_all: bool,
    pub(super) facts: Facts,
    pub(super) hash: Algorithm,
    /// What the next HASH is about: first and last byte.
    pub(super) range: Option<(u64, u64)>,
    /// What the user sees as `/`.
    pub(super) root: VPath,
    /// The working directory, below the root.
    pub(super) here: VPath,
}

/// Commands that are permitted before sign-in.
const fn is_open(verb: Verb) -> bool {
    use Verb as V;
    matches!(
        verb,
        V::User
            | V::Pass
            | V::Acct
            | V::Quit
            | V::Rein
            | V::Auth
            | V::Pbsz
            | V::Prot
            | V::Ccc
            | V::Feat
            | V::Help
            | V::Noop
            | V::Syst
            | V::Host
            | V::Clnt
            | V::Opts
            | V::Lang
    )
}

impl State {
    /// Whether a command may be given now; `named` if something is named with it.
    pub(super) fn gate(&self, verb: Verb, named: bool, settings: &Settings) -> Result<(), Answer> {
        let open = is_open(verb) || (matches!(verb, Verb::Stat | Verb::Site) && !named);
        if !self.signed_in && !open {
            return Err(Answer::of(530, "Log in with USER and PASS first."));
        }
        let signs_in = matches!(verb, Verb::User | Verb::Pass);
        if signs_in && settings.tls == TlsUse::Required && !self.secure {
            return Err(Answer::of(530, "TLS required: use AUTH TLS first."));
        }
        if verb.transfers() && settings.protect_data && !self.protect {
            return Err(Answer::of(521, "Encrypted data required: use PROT P first."));
        }
        let opens = matches!(verb, Verb::Port | Verb::Pasv | Verb::Eprt);
        if opens && self.epsv_all {
            return Err(Answer::of(501, "EPSV ALL was given."));
        }
        Ok(())
    }

    /// Clears the state that a command ends: RNTO is valid only right after RNFR.
    pub(super) fn enter(&mut self, verb: Verb) {
        if !matches!(verb, Verb::Rnfr | Verb::Rnto) {
            self.renaming = None;
        }
    }

    /// Where the transfer that comes now begins: a REST holds for one.
    pub(super) fn take_rest(&mut self) -> u64 {
        std::mem::take(&mut self.rest)
    }

    /// A path as the user writes it, below the user's root.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn shown(&self, path: &[u8]) -> Result<VPath, Status> {
        self.here.join(path).map_err(Status::from)
    }

    /// Where such a path is among the shares.
    pub(super) fn real(&self, shown: &VPath) -> VPath {
        self.root.below(shown.parts())
    }

    /// Both at once.
    ///
    /// # Errors
    /// It is no path.
    pub(super) fn resolve(&self, path: &[u8]) -> Result<VPath, Status> {
        Ok(self.real(&self.shown(path)?).as_written(path))
    }

    /// Counts a wrong password; whether that was one too many.
    pub(super) fn count_wrong(&mut self, max: u32) -> bool {
        self.wrong = self.wrong.saturating_add(1);
        self.wrong >= max
    }

    /// A user has signed in with `root` as its root and `here` as its working directory.
    pub(super) fn sign_in(&mut self, root: VPath, here: VPath) {
        (self.signed_in, self.user, self.wrong) = (true, None, 0);
        (self.root, self.here) = (root, here);
    }

    /// Signs the user out, as USER does; the protection of the connection stays.
    pub(super) fn sign_out(&mut self) {
        *self = Self {
            secure: self.secure,
            sized: self.sized,
            protect: self.protect,
            wrong: self.wrong,
            data_type: self.data_type,
            facts: self.facts,
            hash: self.hash,
            epsv_all: self.epsv_all,
            ..Self::default()
        };
    }

    /// Resets everything but the protection of commands and the count of wrong passwords (REIN).
    pub(super) fn reinitialize(&mut self) {
        *self = Self { secure: self.secure, wrong: self.wrong, ..Self::default() };
    }
}

#[cfg(test)]
mod tests;
