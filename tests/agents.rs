//! Agents behind the gate: their hooks' input, what is asked, and the answers. `hooks` runs the
//! processes.

mod edits;
mod inputs;
mod paths;
mod policy;
mod recorded;
mod words;
