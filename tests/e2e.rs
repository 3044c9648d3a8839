//! End-to-end cryptography: known answers, and that nothing altered, swapped, repeated or invented is ever accepted.

mod bundles;
mod decisions;
mod devices;
mod endorsement;
mod introduction;
mod outcome;
mod pairing;
mod people;
mod properties;
mod refused;
mod repository;
mod rfc9180;
mod sealing;
mod vectors;
