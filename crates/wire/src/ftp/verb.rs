//! The commands by name and by the number that statistics know them by.

use super::Malformed;

macro_rules! verbs {
    ($($name:ident = $number:literal, $text:literal, $help:literal;)*) => {
        /// A command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Verb {
            $(#[doc = $help] $name = $number,)*
        }

        impl Verb {
            /// All of them, by number.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name, in capitals.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How it is used, for HELP.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => $help,)* }
            }
        }
    };
}

verbs! {
    User = 1, "USER", "USER <name>: the user name";
    Pass = 2, "PASS", "PASS <password>: the password";
    Acct = 3, "ACCT", "ACCT <account>: not needed";
    Cwd = 4, "CWD", "CWD <path>: change the directory";
    Cdup = 5, "CDUP", "CDUP: change to the parent directory";
    Quit = 6, "QUIT", "QUIT: sign out";
    Rein = 7, "REIN", "REIN: reset the session";
    Port = 8, "PORT", "PORT <h1,h2,h3,h4,p1,p2>: client address for the data connection";
    Pasv = 9, "PASV", "PASV: wait for a data connection";
    Type = 10, "TYPE", "TYPE A|I|L 8: the type of data";
    Stru = 11, "STRU", "STRU F: the structure of files";
    Mode = 12, "MODE", "MODE S: how data is sent";
    Retr = 13, "RETR", "RETR <path>: download";
    Stor = 14, "STOR", "STOR <path>: upload";
    Stou = 15, "STOU", "STOU [<path>]: upload under an unused name";
    Appe = 16, "APPE", "APPE <path>: append";
    Allo = 17, "ALLO", "ALLO <bytes>: accepted, no effect";
    Rest = 18, "REST", "REST <offset>: start offset of the next transfer";
    Rnfr = 19, "RNFR", "RNFR <path>: the file to rename";
    Rnto = 20, "RNTO", "RNTO <path>: its new name";
    Abor = 21, "ABOR", "ABOR: end the transfer";
    Dele = 22, "DELE", "DELE <path>: delete a file";
    Rmd = 23, "RMD", "RMD <path>: remove an empty directory";
    Mkd = 24, "MKD", "MKD <path>: make a directory";
    Pwd = 25, "PWD", "PWD: the current directory";
    List = 26, "LIST", "LIST [<path>]: list in long format";
    Nlst = 27, "NLST", "NLST [<path>]: list names";
    Site = 28, "SITE", "SITE CHMOD|UTIME|HELP: server-specific commands";
    Syst = 29, "SYST", "SYST: the system";
    Stat = 30, "STAT", "STAT [<path>]: the state of the session, or a listing";
    Help = 31, "HELP", "HELP [<command>]: this";
    Noop = 32, "NOOP", "NOOP: nothing";
    Feat = 33, "FEAT", "FEAT: list extensions";
    Opts = 34, "OPTS", "OPTS UTF8 ON|MLST <facts>|HASH [<algorithm>]: options";
    Eprt = 35, "EPRT", "EPRT |<1|2>|<address>|<port>|: client address for the data connection";
    Epsv = 36, "EPSV", "EPSV [1|2|ALL]: wait for a data connection";
    Lang = 37, "LANG", "LANG [<language>]: the language of replies";
    Mdtm = 38, "MDTM", "MDTM <path>: when a file was changed";
    Size = 39, "SIZE", "SIZE <path>: how many bytes RETR would send";
    Mlst = 40, "MLST", "MLST [<path>]: facts of a file";
    Mlsd = 41, "MLSD", "MLSD [<path>]: list with facts";
    Auth = 42, "AUTH", "AUTH TLS: protect this connection";
    Pbsz = 43, "PBSZ", "PBSZ 0: protection buffer size";
    Prot = 44, "PROT", "PROT C|P: data protection level";
    Ccc = 45, "CCC", "CCC: not supported, commands stay encrypted";
    Mfmt = 46, "MFMT", "MFMT <YYYYMMDDHHMMSS> <path>: set when a file was changed";
    Hash = 47, "HASH", "HASH <path>: a digest of a file";
    Rang = 48, "RANG", "RANG <first> <last>: the range of the next HASH";
    Host = 49, "HOST", "HOST <name>: the host name used by the client";
    Clnt = 50, "CLNT", "CLNT <name>: the client program";
    Avbl = 51, "AVBL", "AVBL [<path>]: available bytes";
    Smnt = 52, "SMNT", "SMNT: not offered";
    Adat = 53, "ADAT", "ADAT: not offered";
    Mic = 54, "MIC", "MIC: not offered";
    Conf = 55, "CONF", "CONF: not offered";
    Enc = 56, "ENC", "ENC: not offered";
}

/// Older names (RFC 775, RFC 1123 §4.1.3.1).
const ALIASES: [(&str, Verb); 5] = [
    ("XMKD", Verb::Mkd),
    ("XRMD", Verb::Rmd),
    ("XPWD", Verb::Pwd),
    ("XCUP", Verb::Cdup),
    ("XCWD", Verb::Cwd),
];

impl Verb {
    /// The number in statistics; 0 stands for what is no command.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The verb with this name, in whatever case.
    ///
    /// # Errors
    /// [`Malformed::Unknown`].
    pub fn parse(name: &[u8]) -> Result<Self, Malformed> {
        let known = Self::ALL.iter().find(|verb| verb.name().as_bytes().eq_ignore_ascii_case(name));
        let alias = || {
            let same = |(alias, _): &&(&str, Self)| alias.as_bytes().eq_ignore_ascii_case(name);
            ALIASES.iter().find(same).map(|(_, verb)| *verb)
        };
        known.copied().or_else(alias).ok_or(Malformed::Unknown)
    }

    /// Whether the server answers it with more than "not offered" (RFC 959 §4.2, code 502).
    pub const fn offered(self) -> bool {
        use Verb::{Adat, Conf, Enc, Mic, Smnt};
        !matches!(self, Smnt | Adat | Mic | Conf | Enc)
    }

    /// Whether its parameter is secret: it is never shown.
    pub const fn is_secret(self) -> bool {
        matches!(self, Self::Pass | Self::Acct | Self::Adat)
    }

    /// Whether it opens a data connection.
    pub const fn transfers(self) -> bool {
        use Verb::{Appe, List, Mlsd, Nlst, Retr, Stor, Stou};
        matches!(self, Retr | Stor | Stou | Appe | List | Nlst | Mlsd)
    }
}
