//! Base64 as clients write it: some leave the padding out.

use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, ANY_PADDING);
pub(super) const BASE64URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, ANY_PADDING);
