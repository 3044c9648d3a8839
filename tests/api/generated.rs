//! Calls made up from the document, right, nearly right and wrong: none is a server error, and
//! every answer is documented.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::runtime::Handle;

use super::Everyone;
use super::making::calls;
use crate::support::{Cluster, Contract};

/// How many calls are made.
const CALLS: u32 = 3_000;

#[tokio::test(flavor = "multi_thread")]
async fn no_call_made_up_from_the_document_is_answered_otherwise_than_documented() {
    let cluster = Cluster::with(1, |config| {
        config.limits.wait_default_seconds = 1;
        config.limits.wait_max_seconds = 1;
    })
    .await;
    let everyone = Arc::new(Everyone::of(&cluster).await);
    let contract = Arc::new(Contract::of(&everyone.nobody).await);
    let handle = Handle::current();
    let statuses = Arc::new(std::sync::Mutex::new(
        std::collections::BTreeMap::<u16, u32>::new(),
    ));
    let counted = Arc::clone(&statuses);
    let running = tokio::task::spawn_blocking(move || {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let config = Config {
            cases: CALLS,
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, rng);
        let outcome = runner.run(&calls(&contract), |made| {
            let client = everyone.all()[made.caller];
            let call = client.call(made.operation.method.clone(), &made.path);
            let call = made
                .headers
                .iter()
                .fold(call, |call, (name, value)| call.header(name, value));
            let call = match &made.body {
                Some(body) => call
                    .header("content-type", "application/json")
                    .bytes(body.clone()),
                None => call,
            };
            let answer = handle.block_on(call.send());
            *statuses.lock().unwrap().entry(answer.status).or_default() += 1;
            prop_assert!(answer.status < 500, "{answer:?}");
            let checked = contract.check(&made.operation.method, &made.operation.path, &answer);
            prop_assert!(checked.is_ok(), "{}", checked.unwrap_err());
            Ok(())
        });
        if let Err(fault) = outcome {
            panic!("{fault}");
        }
    });
    running.await.unwrap();
    // Not all of them were turned away at the door.
    let counted = counted.lock().unwrap();
    for status in [200, 202, 400, 401, 403, 404, 422] {
        assert!(counted.contains_key(&status), "{counted:?}");
    }
}
