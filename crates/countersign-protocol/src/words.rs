//! Enums whose variants are words, on the wire and in the database.

/// An enum of words, as [`words!`](crate::words!) defines it.
pub trait WordEnum: Sized + 'static {
    const WORDS: &'static [&'static str];

    fn parse(word: &str) -> Option<Self>;
}

/// Defines such enums. The crate that calls it needs serde.
#[macro_export]
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal),+ $(,)? })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
        pub enum $name { $($(#[$note])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl $crate::words::WordEnum for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn parse(word: &str) -> Option<Self> {
                Self::parse(word)
            }
        }
    )+};
}

pub use words;
