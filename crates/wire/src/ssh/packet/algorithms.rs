//! Names and sizes of ciphers and MACs.

/// A cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    Chacha20Poly1305,
    Aes128Ctr,
    Aes192Ctr,
    Aes256Ctr,
}

impl Cipher {
    /// All of them, the fastest of those with a tag of their own first.
    pub const ALL: [Self; 6] = [
        Self::Aes128Gcm,
        Self::Aes256Gcm,
        Self::Chacha20Poly1305,
        Self::Aes128Ctr,
        Self::Aes192Ctr,
        Self::Aes256Ctr,
    ];

    /// Its name in SSH.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes128-gcm@openssh.com",
            Self::Aes256Gcm => "aes256-gcm@openssh.com",
            Self::Chacha20Poly1305 => "chacha20-poly1305@openssh.com",
            Self::Aes128Ctr => "aes128-ctr",
            Self::Aes192Ctr => "aes192-ctr",
            Self::Aes256Ctr => "aes256-ctr",
        }
    }

    /// The cipher of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| cipher.name() == name)
    }

    /// Whether it needs no separate MAC.
    pub fn is_aead(self) -> bool {
        matches!(self, Self::Aes128Gcm | Self::Aes256Gcm | Self::Chacha20Poly1305)
    }

    /// Length of its key in bytes.
    pub fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::Aes128Ctr => 16,
            Self::Aes192Ctr => 24,
            Self::Aes256Gcm | Self::Aes256Ctr => 32,
            Self::Chacha20Poly1305 => 64,
        }
    }

    /// Length of its initial vector in bytes.
    pub fn iv_len(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 12,
            Self::Chacha20Poly1305 => 0,
            Self::Aes128Ctr | Self::Aes192Ctr | Self::Aes256Ctr => 16,
        }
    }

    /// Bytes after which there should be new keys: 2^32 blocks for AES (RFC 4344, section 3.2), and
    /// what OpenSSH has for ChaCha20.
    pub fn bytes_max(self) -> u64 {
        if self == Self::Chacha20Poly1305 { 1 << 30 } else { 1 << 36 }
    }
}

/// A MAC: HMAC with SHA-2, over what is encrypted already (`etm`) or over what will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Mac {
    Sha256Etm,
    Sha512Etm,
    Sha256,
    Sha512,
}

impl Mac {
    /// All of them, the better ones first.
    pub const ALL: [Self; 4] = [Self::Sha256Etm, Self::Sha512Etm, Self::Sha256, Self::Sha512];

    /// Its name in SSH.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256Etm => "hmac-sha2-256-etm@openssh.com",
            Self::Sha512Etm => "hmac-sha2-512-etm@openssh.com",
            Self::Sha256 => "hmac-sha2-256",
            Self::Sha512 => "hmac-sha2-512",
        }
    }

    /// The MAC of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mac| mac.name() == name)
    }

    /// Whether it is over what is encrypted already.
    pub fn is_etm(self) -> bool {
        matches!(self, Self::Sha256Etm | Self::Sha512Etm)
    }

    /// Length of its key and of its result in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Sha256Etm | Self::Sha256 => 32,
            Self::Sha512Etm | Self::Sha512 => 64,
        }
    }
}
