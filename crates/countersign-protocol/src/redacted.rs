//! Secrets that must not be printed.

/// Implements `Debug` for types, each with a constant text.
#[macro_export]
macro_rules! redacted {
    ($($name:ident = $text:literal),+ $(,)?) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($text)
            }
        }
    )+};
}

pub use redacted;
