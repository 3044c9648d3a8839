//! The clients at both ends of the gateway: the enforcer beside an agent, and the approver in a terminal. The commands, the
//! tests and the benchmark use this library. Of the gateway it uses nothing but `protocol` and `e2e`: everything else it
//! learns over the network, from a gateway that may be hostile.
//!
//! | file | contents |
//! |---|---|
//! | `gateway`, `address`, `channel`, `tls` | calls and WebSockets to any node of a list |
//! | `wire` | messages as they travel |
//! | `profile`, `private_file` | what is kept between runs |
//! | `enforcer` | asking, and what must hold before an answer counts |
//! | `approver` | joining, pairing, reading, deciding, devices |
//! | `record` | a decision that can be verified offline |
//! | `visible` | text from elsewhere, fit for a terminal |

mod address;
pub mod approver;
mod channel;
pub mod enforcer;
mod error;
mod gateway;
mod private_file;
pub mod profile;
mod record;
pub mod shell;
mod tls;
mod visible;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

pub use self::address::parse_url;
pub use self::channel::{ChannelRole, ChannelWatch, PushedEvent};
pub use self::error::{ClientError, GatewayRefusal};
pub use self::gateway::{GatewayAnswer, GatewayCall, GatewayClient, GatewayLocation};
pub use self::record::{DecisionRecord, MAX_RECORD_BYTES, VerifiedRecord};
pub use self::visible::{has_invisible, visible, visible_lines};
use countersign_e2e as e2e;

/// The system's randomness.
pub fn random(bytes: &mut [u8]) -> Result<(), e2e::Error> {
    getrandom::fill(bytes).map_err(|_| e2e::Error::Random)
}

fn encode_key(bytes: &[u8; 32]) -> Zeroizing<String> {
    Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes))
}

fn decode_key(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    let length = URL_SAFE_NO_PAD.decode_slice(text, bytes.as_mut_slice());
    (length == Ok(32)).then_some(bytes)
}
