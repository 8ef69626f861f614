//! Agreeing on algorithms (RFC 4253, section 7.1) and on keys: ML-KEM with X25519
//! (draft-ietf-sshm-mlkem-hybrid-kex) and X25519 alone (RFC 8731). All use SHA-256.
//!
//! Secrets come from the library's generator, which takes no other.

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::digest::{Context, SHA256, digest};
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};

use super::codec::{Names, Put};
use super::message::KexInit;
use super::packet::{Cipher, Keys, Mac};

/// Lengths of shares (FIPS 203, RFC 7748).
const KEM_KEY: usize = 1184;
const KEM_CIPHERTEXT: usize = 1088;
const POINT: usize = 32;

/// The marks of strict key exchange (OpenSSH, PROTOCOL, section 1.9): client, server.
pub const STRICT: [&str; 2] = ["kex-strict-c-v00@openssh.com", "kex-strict-s-v00@openssh.com"];
/// The mark of a client that takes EXT_INFO (RFC 8308, section 2.1).
pub const EXT_INFO_CLIENT: &str = "ext-info-c";

/// A way to agree on keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    Mlkem768X25519,
    Curve25519,
    /// The same before it had a number.
    Curve25519Libssh,
}

impl Method {
    /// All of them, the preferred first.
    pub const ALL: [Self; 3] = [Self::Mlkem768X25519, Self::Curve25519, Self::Curve25519Libssh];

    /// Its name in SSH.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mlkem768X25519 => "mlkem768x25519-sha256",
            Self::Curve25519 => "curve25519-sha256",
            Self::Curve25519Libssh => "curve25519-sha256@libssh.org",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// What a side is willing to use, the preferred first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Policy {
    pub kex: Vec<Method>,
    pub ciphers: Vec<Cipher>,
    pub macs: Vec<Mac>,
}

impl Policy {
    /// What is encrypted before its MAC is made, or has a tag of its own.
    pub fn modern() -> Self {
        Self {
            kex: Method::ALL.to_vec(),
            ciphers: Cipher::ALL.to_vec(),
            macs: vec![Mac::Sha256Etm, Mac::Sha512Etm],
        }
    }

    /// With MACs before encryption as well, which libssh2 before 1.11 needs, and with it curl of
    /// Debian 12 and Ubuntu 22.04. With CTR and SHA-2 there is no attack on them.
    pub fn compatible() -> Self {
        Self { macs: Mac::ALL.to_vec(), ..Self::modern() }
    }
}

/// What both sides can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// How keys are agreed on.
    pub method: Method,
    /// The algorithm of the host's signature.
    pub host_key: String,
    /// Client to server, server to client.
    pub ciphers: [Cipher; 2],
    /// The same; none where the cipher needs none.
    pub macs: [Option<Mac>; 2],
    /// The first key exchange packet of the other side was a wrong guess, whichever side it is.
    pub guess_is_wrong: bool,
}

/// There is no algorithm in common.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {what} in common")]
pub struct NothingInCommon {
    /// What for.
    pub what: &'static str,
    /// What the client has for that, as it has named it.
    pub offered: String,
}

impl NothingInCommon {
    fn of(what: &'static str, client: Names<'_>) -> Self {
        Self { what, offered: client.0.to_owned() }
    }

    /// Whether the client could connect to a server that is set to [`Policy::compatible`].
    pub fn is_compatible(&self) -> bool {
        let known = |name: &str| Policy::compatible().macs.iter().any(|mac| mac.name() == name);
        self.what == MAC && Names(&self.offered).iter().any(known)
    }
}

/// What [`NothingInCommon`] is about.
const KEY_EXCHANGE: &str = "key exchange";
const HOST_KEY: &str = "host key algorithm";
const CIPHER: &str = "cipher";
const MAC: &str = "MAC";

/// The first of the client's that the server has, too.
fn common<'a>(
    client: Names<'a>,
    server: Names<'_>,
    what: &'static str,
) -> Result<&'a str, NothingInCommon> {
    let both = client.iter().find(|name| server.has(name));
    both.ok_or_else(|| NothingInCommon::of(what, client))
}

/// What client and server agree on.
///
/// # Errors
/// [`NothingInCommon`], also when they agree on something that we cannot do, which means that the
/// other side has made our list up.
pub fn negotiate(client: &KexInit<'_>, server: &KexInit<'_>) -> Result<Chosen, NothingInCommon> {
    let kex = common(client.kex, server.kex, KEY_EXCHANGE)?;
    let host_key = common(client.host_key, server.host_key, HOST_KEY)?;
    let one_way = |way: usize| {
        let pick = |c: &[Names<'_>; 2], s: &[Names<'_>; 2], what| {
            let (c, s) = (c.get(way).copied(), s.get(way).copied());
            common(c.unwrap_or_default(), s.unwrap_or_default(), what).map(str::to_owned)
        };
        let cipher = pick(&client.cipher, &server.cipher, CIPHER)?;
        let cipher = Cipher::by_name(&cipher).ok_or(NothingInCommon::of(CIPHER, Names(&cipher)))?;
        let mac = if cipher.is_aead() {
            None
        } else {
            let mac = pick(&client.mac, &server.mac, MAC)?;
            Some(Mac::by_name(&mac).ok_or(NothingInCommon::of(MAC, Names(&mac)))?)
        };
        pick(&client.compression, &server.compression, "compression")?;
        Ok((cipher, mac))
    };
    let ((c2s, mac_c2s), (s2c, mac_s2c)) = (one_way(0)?, one_way(1)?);
    let first = |c: Names<'_>, s: Names<'_>| c.first().is_some() && c.first() == s.first();
    Ok(Chosen {
        method: Method::by_name(kex)
            .ok_or_else(|| NothingInCommon::of(KEY_EXCHANGE, client.kex))?,
        host_key: host_key.to_owned(),
        ciphers: [c2s, s2c],
        macs: [mac_c2s, mac_s2c],
        guess_is_wrong: !first(client.kex, server.kex) || !first(client.host_key, server.host_key),
    })
}

/// An invalid key share, or a failure of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key exchange has failed")]
pub struct Failed;

/// The shared secret, encoded as input of hashes.
pub struct Secret(Vec<u8>);

impl Secret {
    fn number(bytes: &[u8]) -> Self {
        let mut out = Vec::new();
        out.put_mpint(bytes);
        Self(out)
    }

    /// Both secrets into one, as a string (draft-ietf-sshm-mlkem-hybrid-kex, section 2.4).
    fn hybrid(kem: &[u8], classic: &[u8]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(kem);
        context.update(classic);
        let mut out = Vec::new();
        out.put_string(context.finish().as_ref());
        Self(out)
    }
}

fn x25519(private: &PrivateKey, theirs: &[u8]) -> Result<[u8; POINT], Failed> {
    agree(private, UnparsedPublicKey::new(&X25519, theirs), Failed, |secret| {
        let secret = *secret.first_chunk().ok_or(Failed)?;
        // Of a point of small order (RFC 7748, section 6.1; RFC 8731, section 3).
        if secret == [0; POINT] { Err(Failed) } else { Ok(secret) }
    })
}

fn public(private: &PrivateKey) -> Result<Vec<u8>, Failed> {
    Ok(private.compute_public_key().map_err(|_| Failed)?.as_ref().to_vec())
}

/// The server's share, and the secret.
///
/// # Errors
/// [`Failed`]
pub fn respond(method: Method, client: &[u8]) -> Result<(Vec<u8>, Secret), Failed> {
    let private = PrivateKey::generate(&X25519).map_err(|_| Failed)?;
    let point = public(&private)?;
    if method != Method::Mlkem768X25519 {
        return Ok((point, Secret::number(&x25519(&private, client)?)));
    }
    let (key, theirs) = client.split_at_checked(KEM_KEY).ok_or(Failed)?;
    let key = EncapsulationKey::new(&ML_KEM_768, key).map_err(|_| Failed)?;
    let (ciphertext, kem) = key.encapsulate().map_err(|_| Failed)?;
    let secret = Secret::hybrid(kem.as_ref(), &x25519(&private, theirs)?);
    Ok(([ciphertext.as_ref(), &point].concat(), secret))
}

/// The client's side of an exchange that has begun.
pub struct ClientKex {
    private: PrivateKey,
    kem: Option<DecapsulationKey>,
    /// Its share, which the server is sent.
    pub share: Vec<u8>,
}

/// Begins an exchange, as the client.
///
/// # Errors
/// [`Failed`]
pub fn initiate(method: Method) -> Result<ClientKex, Failed> {
    let private = PrivateKey::generate(&X25519).map_err(|_| Failed)?;
    let mut share = public(&private)?;
    let mut kem = None;
    if method == Method::Mlkem768X25519 {
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(|_| Failed)?;
        let public = key.encapsulation_key().and_then(|key| key.key_bytes());
        share = [public.map_err(|_| Failed)?.as_ref(), &share].concat();
        kem = Some(key);
    }
    Ok(ClientKex { private, kem, share })
}

impl ClientKex {
    /// The secret, from the server's share.
    ///
    /// # Errors
    /// [`Failed`]
    pub fn finish(self, server: &[u8]) -> Result<Secret, Failed> {
        let Some(kem) = self.kem else {
            return Ok(Secret::number(&x25519(&self.private, server)?));
        };
        let (ciphertext, theirs) = server.split_at_checked(KEM_CIPHERTEXT).ok_or(Failed)?;
        let secret = kem.decapsulate(Ciphertext::from(ciphertext)).map_err(|_| Failed)?;
        Ok(Secret::hybrid(secret.as_ref(), &x25519(&self.private, theirs)?))
    }
}

/// What both sides hash, so that they know that they have seen the same (RFC 4253, section 8).
#[allow(missing_docs)]
pub struct Transcript<'a> {
    pub client_version: &'a [u8],
    pub server_version: &'a [u8],
    pub client_init: &'a [u8],
    pub server_init: &'a [u8],
    pub host_key: &'a [u8],
    pub client_share: &'a [u8],
    pub server_share: &'a [u8],
}

impl Transcript<'_> {
    /// The exchange hash.
    pub fn hash(&self, secret: &Secret) -> [u8; 32] {
        let mut all = Vec::new();
        for part in [
            self.client_version,
            self.server_version,
            self.client_init,
            self.server_init,
            self.host_key,
            self.client_share,
            self.server_share,
        ] {
            all.put_string(part);
        }
        all.put_raw(&secret.0);
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, &all).as_ref());
        hash
    }
}

/// One key (RFC 4253, section 7.2).
fn derive(secret: &Secret, hash: &[u8], session: &[u8], letter: u8, length: usize) -> Vec<u8> {
    let mut key: Vec<u8> = Vec::new();
    while key.len() < length {
        let mut context = Context::new(&SHA256);
        context.update(&secret.0);
        context.update(hash);
        if key.is_empty() {
            context.update(&[letter]);
            context.update(session);
        } else {
            context.update(&key);
        }
        key.extend_from_slice(context.finish().as_ref());
    }
    key.truncate(length);
    key
}

/// The keys of both directions: client to server, server to client.
pub fn keys(chosen: &Chosen, secret: &Secret, hash: &[u8], session: &[u8]) -> [Keys; 2] {
    let one = |letters: [u8; 3], cipher: Cipher, mac: Option<Mac>| {
        let [iv, key, integrity] = letters;
        Keys {
            iv: derive(secret, hash, session, iv, cipher.iv_len()),
            key: derive(secret, hash, session, key, cipher.key_len()),
            mac: derive(secret, hash, session, integrity, mac.map_or(0, Mac::size)),
        }
    };
    let ([c2s, s2c], [mac_c2s, mac_s2c]) = (chosen.ciphers, chosen.macs);
    [one(*b"ACE", c2s, mac_c2s), one(*b"BDF", s2c, mac_s2c)]
}
