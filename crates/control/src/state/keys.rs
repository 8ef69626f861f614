//! Secrets of a server: certificate and key, API token, the secret of file handles.

use std::net::IpAddr;
use std::path::Path;

use base::random::{Random, SystemRandom};

use super::files::{random_hex, read_if_there, write_atomic};
use super::{StateDir, StateError};

/// Certificate chain and key of the admin listener, PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate, with a first line that names what it is good for.
    pub certificate_pem: String,
    /// Its private key.
    pub key_pem: String,
}

/// Secrets of one state directory, made at first start.
#[derive(Debug)]
pub struct Keys {
    /// For HTTPS.
    pub identity: Identity,
    /// The bearer token of the API.
    pub api_token: String,
    /// Key of the handles' MAC.
    pub handle_secret: [u8; 32],
}

/// Marks a certificate as made by us, and says for which names.
const NAMES: &str = "# made by plimsoll for: ";

impl Keys {
    /// Reads the secrets, and makes those that are missing. The certificate is made anew if it is
    /// ours and does not cover `address` or the host's name; one put there by the administrator
    /// is left alone.
    ///
    /// # Errors
    /// [`StateError::Damaged`] if a secret has the wrong size; [`StateError::Io`].
    pub fn open(state: &StateDir, address: IpAddr) -> Result<Self, StateError> {
        Ok(Self {
            identity: identity(state, &names(address))?,
            api_token: api_token(&state.file("api-token"))?,
            handle_secret: handle_secret(&state.file("handle-secret"))?,
        })
    }
}

fn names(address: IpAddr) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        let host = host.trim();
        if !host.is_empty() && host.is_ascii() {
            names.push(host.to_owned());
        }
    }
    if !address.is_unspecified() {
        names.push(address.to_string());
    }
    names.sort();
    names.dedup();
    names
}

fn identity(state: &StateDir, names: &[String]) -> Result<Identity, StateError> {
    let (certificate, key) = (state.file("certificate.pem"), state.file("key.pem"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let have = (read_if_there(&certificate)?.map(text), read_if_there(&key)?.map(text));
    if let (Some(certificate_pem), Some(key_pem)) = have
        && covers(&certificate_pem, names)
    {
        return Ok(Identity { certificate_pem, key_pem });
    }
    let signing = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "plimsoll");
    let made = params.self_signed(&signing)?;
    let certificate_pem = format!("{NAMES}{}\n{}", names.join(" "), made.pem());
    let key_pem = signing.serialize_pem();
    // The key first: a certificate without its key would never be replaced.
    write_atomic(&key, key_pem.as_bytes(), 0o600)?;
    write_atomic(&certificate, certificate_pem.as_bytes(), 0o600)?;
    Ok(Identity { certificate_pem, key_pem })
}

fn covers(certificate_pem: &str, names: &[String]) -> bool {
    let Some(line) = certificate_pem.lines().next().and_then(|l| l.strip_prefix(NAMES)) else {
        return true;
    };
    names.iter().all(|name| line.split(' ').any(|n| n == name))
}

fn api_token(path: &Path) -> Result<String, StateError> {
    if let Some(bytes) = read_if_there(path)? {
        let token = String::from_utf8_lossy(&bytes).trim().to_owned();
        if token.len() < 32 {
            let reason = format!("a token has at least 32 characters, not {}", token.len());
            return Err(StateError::Damaged { path: path.to_owned(), reason });
        }
        return Ok(token);
    }
    let token = random_hex::<32>();
    write_atomic(path, format!("{token}\n").as_bytes(), 0o600)?;
    Ok(token)
}

fn handle_secret(path: &Path) -> Result<[u8; 32], StateError> {
    if let Some(bytes) = read_if_there(path)? {
        return <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| StateError::Damaged {
            path: path.to_owned(),
            reason: format!("32 bytes expected, {} found", bytes.len()),
        });
    }
    let mut secret = [0; 32];
    SystemRandom.fill(&mut secret);
    write_atomic(path, &secret, 0o600)?;
    Ok(secret)
}
