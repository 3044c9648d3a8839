//! The platform endpoints.

mod keys;
mod listings;
mod tenants;

pub use self::keys::{list_keys, put_key, revoke_key};
pub use self::listings::{cancel, list_exchanges};
pub use self::tenants::{
    create_credential, create_tenant, disable_tenant, list_credentials, list_tenants,
    revoke_credential,
};
