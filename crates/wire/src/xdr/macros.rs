//! The declarative macros for structures and enumerations. A structure is encoded and decoded
//! member by member in the order written; an enumeration is a number that may be unknown to us.

/// Declares a structure with both directions of its codec.
macro_rules! xdr_struct {
    (@codec [$($lt:lifetime)?] [$de:lifetime] $name:ident { $($field:ident : $type:ty),* }) => {
        impl$(<$lt>)? $crate::xdr::Encode for $name$(<$lt>)? {
            #[inline]
            fn encode(&self, w: &mut $crate::xdr::Writer<'_>) {
                $($crate::xdr::Encode::encode(&self.$field, w);)*
            }
        }

        impl<$de> $crate::xdr::Decode<$de> for $name$(<$lt>)? {
            #[inline]
            fn decode(
                r: &mut $crate::xdr::Reader<$de>,
            ) -> Result<Self, $crate::xdr::DecodeError> {
                Ok(Self {
                    $($field: <$type as $crate::xdr::Item<$de>>::item(
                        r,
                        concat!(stringify!($name), ".", stringify!($field)),
                    )?,)*
                })
            }
        }

        #[cfg(test)]
        impl<$de> $crate::arb::Arb<$de> for $name$(<$lt>)? {
            fn arb(g: &mut $crate::arb::Gen<$de>) -> Self {
                Self { $($field: g.arb(),)* }
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$lt:lifetime> {
            $($(#[$fmeta:meta])* pub $field:ident : $type:ty),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name<$lt> { $($(#[$fmeta])* pub $field: $type,)* }
        xdr_struct!(@codec [$lt] [$lt] $name { $($field: $type),* });
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$fmeta:meta])* pub $field:ident : $type:ty),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name { $($(#[$fmeta])* pub $field: $type,)* }
        xdr_struct!(@codec [] ['de] $name { $($field: $type),* });
    };
}

/// Declares a number with named values. Values that have no name survive.
macro_rules! xdr_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$vmeta:meta])* $value:ident = $number:literal $text:literal),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            $($(#[$vmeta])* pub const $value: Self = Self($number);)*

            /// Every value that has a name, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$value),*];

            /// The name, or `None` for a value that has none.
            pub const fn known_name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.known_name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl $crate::xdr::Encode for $name {
            #[inline]
            fn encode(&self, w: &mut $crate::xdr::Writer<'_>) {
                w.u32(self.0);
            }
        }

        impl $crate::xdr::Decode<'_> for $name {
            #[inline]
            fn decode(
                r: &mut $crate::xdr::Reader<'_>,
            ) -> Result<Self, $crate::xdr::DecodeError> {
                Ok(Self(r.u32(stringify!($name))?))
            }
        }

        #[cfg(test)]
        impl $crate::arb::Arb<'_> for $name {
            fn arb(g: &mut $crate::arb::Gen<'_>) -> Self {
                // Mostly values with a name, sometimes any number.
                let any = g.arb::<u32>();
                match Self::ALL.get(any as usize % (Self::ALL.len() + 1)) {
                    Some(value) => *value,
                    None => Self(any),
                }
            }
        }
    };
}

/// Declares a borrowed byte string with a maximum length.
macro_rules! xdr_bytes {
    ($(#[$meta:meta])* pub struct $name:ident, $max:expr, $what:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name<'a>(pub &'a [u8]);

        impl $crate::xdr::Encode for $name<'_> {
            #[inline]
            fn encode(&self, w: &mut $crate::xdr::Writer<'_>) {
                w.opaque(self.0);
            }
        }

        impl<'a> $crate::xdr::Decode<'a> for $name<'a> {
            #[inline]
            fn decode(
                r: &mut $crate::xdr::Reader<'a>,
            ) -> Result<Self, $crate::xdr::DecodeError> {
                Ok(Self(r.opaque($max, $what)?))
            }
        }

        #[cfg(test)]
        impl<'a> $crate::arb::Arb<'a> for $name<'a> {
            fn arb(g: &mut $crate::arb::Gen<'a>) -> Self {
                Self(g.bytes($max))
            }
        }
    };
}

/// Declares several structures with the member names of the RFC, which need no documentation.
macro_rules! xdr_structs {
    ($(
        $(#[$meta:meta])*
        $name:ident $(<$lt:lifetime>)? { $($field:ident : $type:ty),* $(,)? }
    )*) => {$(
        xdr_struct! {
            $(#[$meta])*
            pub struct $name $(<$lt>)? {
                $(#[doc = concat!("`", stringify!($field), "` of the RFC.")] pub $field: $type),*
            }
        }
    )*};
}

/// Declares a discriminated union (RFC 4506 §4.15) without a default arm. The type of a value's arm
/// is `()` where the RFC has void.
macro_rules! xdr_union {
    (@codec [$($lt:lifetime)?] [$de:lifetime] $name:ident $what:literal
        { $($value:literal $variant:ident($type:ty)),* }) => {
        impl$(<$lt>)? $crate::xdr::Encode for $name$(<$lt>)? {
            fn encode(&self, w: &mut $crate::xdr::Writer<'_>) {
                match self {
                    $(Self::$variant(value) => {
                        w.u32($value);
                        $crate::xdr::Encode::encode(value, w);
                    })*
                }
            }
        }

        impl<$de> $crate::xdr::Decode<$de> for $name$(<$lt>)? {
            fn decode(
                r: &mut $crate::xdr::Reader<$de>,
            ) -> Result<Self, $crate::xdr::DecodeError> {
                match r.u32($what)? {
                    $($value => Ok(Self::$variant(<$type as $crate::xdr::Item<$de>>::item(
                        r,
                        concat!($what, ".", stringify!($variant)),
                    )?)),)*
                    got => Err($crate::xdr::DecodeError::BadValue { what: $what, got }),
                }
            }
        }

        #[cfg(test)]
        impl<$de> $crate::arb::Arb<$de> for $name$(<$lt>)? {
            fn arb(g: &mut $crate::arb::Gen<$de>) -> Self {
                let makers: &[fn(&mut $crate::arb::Gen<$de>) -> Self] =
                    &[$(|g| Self::$variant(g.arb())),*];
                makers[usize::from(g.byte()) % makers.len()](g)
            }
        }
    };
    ($(#[$meta:meta])* $name:ident<$lt:lifetime> $what:literal
        { $($value:literal $variant:ident($type:ty)),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name<$lt> { $($variant($type)),* }
        xdr_union!(@codec [$lt] [$lt] $name $what { $($value $variant($type)),* });
    };
    ($(#[$meta:meta])* $name:ident $what:literal
        { $($value:literal $variant:ident($type:ty)),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name { $($variant($type)),* }
        xdr_union!(@codec [] ['de] $name $what { $($value $variant($type)),* });
    };
}
