//! Fetches the documents of other services that the checks need.

use std::time::Duration;

use countersign::outbound::OutboundClient;

const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

pub async fn fetch(url: &str) -> Result<Vec<u8>, String> {
    let uri = url.parse().map_err(|_| format!("{url} is not a URL"))?;
    let outbound =
        OutboundClient::new(url.starts_with("https")).map_err(|error| error.to_string())?;
    let deadline = tokio::time::Instant::now() + FETCH_TIMEOUT;
    match outbound.get(&uri, deadline).await {
        Ok(bytes) => Ok(bytes.to_vec()),
        Err(error) => Err(format!("cannot read {url}: {error}")),
    }
}
