//! How a registry is written: one entry is the variant, its number and its row, so that a list, a
//! name or a row cannot be forgotten.

/// An enum whose variants have a row each: `ALL` lists them in the order in which they are written,
/// `row` gives the row.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $row:ty {
            $($(#[$doc:meta])* $variant:ident = $number:literal => $value:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// All of them, in the order of menus.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$variant),*];

            const fn row(self) -> &'static $row {
                match self {
                    $(Self::$variant => {
                        const ROW: $row = $value;
                        &ROW
                    })*
                }
            }
        }
    };
}

pub(super) use table;
