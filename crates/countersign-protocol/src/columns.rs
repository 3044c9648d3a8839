//! How the protocol's types are stored: the PostgreSQL type of each, and how it is read back. A
//! stored value that the gateway would never have written is an error.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef, Postgres};
use sqlx::{Decode, Encode, Type};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::artifact::Form;
use crate::canonical::Sha256Hex;
use crate::credential::{CredentialProfile, RoleName};
use crate::decision::Verification;
use crate::device::DeviceChange;
use crate::exchange::ExchangeState;
use crate::id::{
    ApproverId, CredentialId, EnforcerId, InvitationId, MessageId, OperationId, RequestId,
    SessionId, SignerKeyId, SnapshotId, TenantId, TextId as _,
};
use crate::notification::NotificationKind;
use crate::pairing::Nonce;
use crate::presence::Transport;
use crate::signature::PublicKey;
use crate::timestamp::Timestamp;
use crate::{prompt, session};

/// Stores types as another one that sqlx knows. One expression writes a value, the other reads it.
macro_rules! stored_as {
    ($base:ty: $($type:ty),+; |$value:ident| $write:expr; |$stored:ident| $read:expr) => {$(
        impl Type<Postgres> for $type {
            fn type_info() -> PgTypeInfo {
                <$base as Type<Postgres>>::type_info()
            }

            fn compatible(found: &PgTypeInfo) -> bool {
                <$base as Type<Postgres>>::compatible(found)
            }
        }

        impl PgHasArrayType for $type {
            fn array_type_info() -> PgTypeInfo {
                <$base as PgHasArrayType>::array_type_info()
            }
        }

        impl Encode<'_, Postgres> for $type {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
                let $value = self;
                Encode::<Postgres>::encode_by_ref(&$write, buffer)
            }
        }

        impl<'r> Decode<'r, Postgres> for $type {
            fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
                let $stored = <$base as Decode<'_, Postgres>>::decode(value)?;
                $read.ok_or_else(|| concat!("not a stored ", stringify!($type)).into())
            }
        }
    )+};
}

stored_as! { Uuid: MessageId, OperationId; |id| id.0; |id| Some(Self(id)) }
stored_as! { OffsetDateTime: Timestamp; |time| time.inner(); |time| Some(Self::from(time)) }
stored_as! { &[u8]: PublicKey; |key| key.as_bytes().as_slice(); |bytes| Self::from_bytes(bytes) }
stored_as! { &str: Sha256Hex; |hash| hash.to_string(); |text| Self::parse(text) }
stored_as! {
    &str:
        TenantId, EnforcerId, ApproverId, RequestId, SessionId, SnapshotId, SignerKeyId, CredentialId, InvitationId, Nonce,
        Form, RoleName, CredentialProfile, ExchangeState, Transport, Verification, DeviceChange, NotificationKind,
        prompt::PromptStatus, session::EndReason, session::SnapshotType, session::SessionState;
    |value| value.as_str();
    |text| Self::parse(text)
}
