//! Read access to the fields of values that only this crate may build.

/// Defines functions that return a field of the same name, by reference or as a copy.
macro_rules! getters {
    ($($(#[$doc:meta])* $vis:vis $kind:ident $name:ident: $type:ty;)+) => {$(
        getters!(@$kind $(#[$doc])* $vis $name: $type);
    )+};
    (@ref $(#[$doc:meta])* $vis:vis $name:ident: $type:ty) => {
        $(#[$doc])*
        $vis fn $name(&self) -> &$type {
            &self.$name
        }
    };
    (@copy $(#[$doc:meta])* $vis:vis $name:ident: $type:ty) => {
        $(#[$doc])*
        $vis fn $name(&self) -> $type {
            self.$name
        }
    };
}
