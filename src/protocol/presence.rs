//! `hello`: what an enforcer's client says of itself on a fresh WebSocket.

use super::json::{Node, Value};
use super::reader::{Invalid, Reader};

/// Checks a `hello`: a bare object, whose members may be missing but not be of another type.
pub fn parse_hello(node: &Node<'_>) -> Result<(), Invalid> {
    let mut hello = Reader::new(node, "")?;
    hello.optional_str("msgType")?;
    hello.optional_str("workspaceName")?;
    hello.optional_str("enforcerLabel")?;
    if let Some(node) = hello.optional_nested("capabilities")? {
        let mut capabilities = Reader::new(node, "/capabilities")?;
        for name in ["push", "poll", "sse"] {
            if let Some(flag) = capabilities.optional(name)
                && !matches!(flag.value, Value::Bool(_))
            {
                return Err(Invalid::shape(capabilities.at(name), "true or false"));
            }
        }
        capabilities.finish()?;
    }
    hello.finish()
}
