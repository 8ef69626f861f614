//! How a registry is written: one entry is the variant, its number and its row, so that a list, a
//! name or a row cannot be forgotten.

/// An enum with a row for each variant: `ALL` lists them in the order in which they are written,
/// `row` returns the row. An entry with `if` exists only in a build for which that holds.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $row:ty {
            $($(#[$doc:meta])* $variant:ident = $number:literal $(if $cfg:meta)? => $value:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $(#[cfg($cfg)])? $variant = $number,)*
        }

        impl $name {
            /// All of them, in the order of menus.
            pub const ALL: [Self; [$($(#[cfg($cfg)])? $number),*].len()] =
                [$($(#[cfg($cfg)])? Self::$variant),*];

            const fn row(self) -> &'static $row {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant => {
                        const ROW: $row = $value;
                        &ROW
                    })*
                }
            }
        }
    };
}

pub(super) use table;
