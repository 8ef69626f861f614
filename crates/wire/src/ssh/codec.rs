//! The data types of SSH (RFC 4251, section 5), both directions.

/// What a peer sent cannot be read. The text names the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The packet ends before the field does.
    #[error("{0} is truncated")]
    Short(&'static str),
    /// The field is longer than it may be.
    #[error("{0} is too long")]
    Long(&'static str),
    /// The value of the field is invalid.
    #[error("{0} is not valid")]
    Value(&'static str),
    /// Bytes follow the end of the message.
    #[error("bytes after the end of the message")]
    Trailing,
}

/// The result of reading a field.
pub type Result<T> = std::result::Result<T, Malformed>;

/// Reads fields off the front of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Everything that is left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// [`Malformed::Short`]
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Malformed::Short(what))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`Malformed::Short`]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed::Short(what))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A byte.
    ///
    /// # Errors
    /// [`Malformed::Short`]
    pub fn byte(&mut self, what: &'static str) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array(what)?))
    }

    /// A boolean: everything but 0 is true.
    ///
    /// # Errors
    /// [`Malformed::Short`]
    pub fn boolean(&mut self, what: &'static str) -> Result<bool> {
        Ok(self.byte(what)? != 0)
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// [`Malformed::Short`]
    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array(what)?))
    }

    /// A number of 64 bits.
    ///
    /// # Errors
    /// [`Malformed::Short`]
    pub fn u64(&mut self, what: &'static str) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array(what)?))
    }

    /// A string: bytes with their number before them. It is bounded by the packet.
    ///
    /// # Errors
    /// [`Malformed::Short`]
    pub fn string(&mut self, what: &'static str) -> Result<&'a [u8]> {
        let length = self.u32(what)? as usize;
        self.take(length, what)
    }

    /// A string of at most `max` bytes.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Long`]
    pub fn string_max(&mut self, max: usize, what: &'static str) -> Result<&'a [u8]> {
        let bytes = self.string(what)?;
        if bytes.len() > max { Err(Malformed::Long(what)) } else { Ok(bytes) }
    }

    /// A string that must be UTF-8.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Value`]
    pub fn text(&mut self, what: &'static str) -> Result<&'a str> {
        std::str::from_utf8(self.string(what)?).map_err(|_| Malformed::Value(what))
    }

    /// A name of an algorithm, method, request or the like: ASCII, at most 64 bytes by RFC 4251,
    /// section 6; we take twice as many, for there are some.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Long`], [`Malformed::Value`]
    pub fn name(&mut self, what: &'static str) -> Result<&'a str> {
        let bytes = self.string_max(128, what)?;
        match std::str::from_utf8(bytes) {
            Ok(name) if name.is_ascii() => Ok(name),
            _ => Err(Malformed::Value(what)),
        }
    }

    /// A list of names.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Value`]
    pub fn names(&mut self, what: &'static str) -> Result<Names<'a>> {
        let bytes = self.string(what)?;
        match std::str::from_utf8(bytes) {
            Ok(names) if names.is_ascii() => Ok(Names(names)),
            _ => Err(Malformed::Value(what)),
        }
    }

    /// A number of any size that is not negative, without leading zeros.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Value`]
    pub fn mpint(&mut self, what: &'static str) -> Result<&'a [u8]> {
        match self.string(what)? {
            [0, rest @ ..] if rest.first().is_some_and(|b| *b >= 0x80) => Ok(rest),
            [first, ..] if *first == 0 || *first >= 0x80 => Err(Malformed::Value(what)),
            bytes => Ok(bytes),
        }
    }

    /// Nothing may follow.
    ///
    /// # Errors
    /// [`Malformed::Trailing`]
    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }
}

/// A list of names with commas between them (RFC 4251, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Names<'a>(pub &'a str);

impl<'a> Names<'a> {
    /// The names in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.0.split(',').filter(|name| !name.is_empty())
    }

    /// Whether `name` is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.iter().any(|n| n == name)
    }

    /// The first.
    pub fn first(&self) -> Option<&'a str> {
        self.iter().next()
    }
}

/// Appends fields to a packet.
pub trait Put {
    /// A byte.
    fn put_byte(&mut self, value: u8);
    /// Bytes as they are.
    fn put_raw(&mut self, bytes: &[u8]);

    /// A boolean.
    fn put_bool(&mut self, value: bool) {
        self.put_byte(u8::from(value));
    }

    /// A number of 32 bits.
    fn put_u32(&mut self, value: u32) {
        self.put_raw(&value.to_be_bytes());
    }

    /// A number of 64 bits.
    fn put_u64(&mut self, value: u64) {
        self.put_raw(&value.to_be_bytes());
    }

    /// A string: its length in 32 bits before it. What we send is always shorter than 4 GiB.
    fn put_string(&mut self, bytes: &[u8]) {
        debug_assert!(u32::try_from(bytes.len()).is_ok());
        self.put_u32(bytes.len() as u32);
        self.put_raw(bytes);
    }

    /// A list of names.
    fn put_names(&mut self, names: &[&str]) {
        self.put_string(names.join(",").as_bytes());
    }

    /// A number of any size, given as big-endian bytes, not negative.
    fn put_mpint(&mut self, number: &[u8]) {
        let zeros = number.iter().take_while(|b| **b == 0).count();
        let number = number.get(zeros..).unwrap_or_default();
        let sign = number.first().is_some_and(|b| *b >= 0x80);
        self.put_u32(number.len() as u32 + u32::from(sign));
        if sign {
            self.put_byte(0);
        }
        self.put_raw(number);
    }
}

impl Put for Vec<u8> {
    fn put_byte(&mut self, value: u8) {
        self.push(value);
    }

    fn put_raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
