//! The macro that defines a section: a struct with its defaults. Its constants are no keys: neither
//! a file nor the environment can set them, but a test in this process can.

macro_rules! section {
    (
        $(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr),* $(,)? }
        $(constants { $($(#[$constant_doc:meta])* $constant:ident: $constant_type:ty = $value:expr),+ $(,)? })?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Deserialize, Serialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            $($($(#[$constant_doc])* #[serde(skip)] pub $constant: $constant_type,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* $($($constant: $value,)+)? }
            }
        }

        $(impl $name {
            /// The constants by name, for documents.
            pub fn constants(&self) -> serde_json::Value {
                serde_json::json!({ $(stringify!($constant): self.$constant),+ })
            }
        })?
    };
}
