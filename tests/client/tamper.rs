//! A gateway that lies: it passes calls on, and changes what it likes of the answers.

use std::sync::Arc;

use serde_json::Value;

use crate::hostile::meddler::{Content, Meddler};

/// Passes calls on until it is dropped.
pub struct Tamper {
    pub url: String,
    _meddler: Meddler,
}

impl Tamper {
    /// `change` gets the path, and the answer if it is JSON.
    pub async fn start(
        node: &str,
        change: impl Fn(&str, &mut Value) + Send + Sync + 'static,
    ) -> Self {
        let change = Arc::new(change);
        let meddler = Meddler::start(node, move |call, gateway| {
            let change = Arc::clone(&change);
            async move {
                let mut reply = gateway.pass(&call).await;
                if let Ok(mut value) = serde_json::from_slice::<Value>(reply.text()) {
                    let before = value.clone();
                    change(&call.path, &mut value);
                    if value != before {
                        reply.body = Content::Whole(value.to_string().into_bytes());
                    }
                }
                reply
            }
        })
        .await;
        Self {
            url: meddler.url.clone(),
            _meddler: meddler,
        }
    }
}
