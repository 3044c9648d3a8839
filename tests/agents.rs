//! Agents behind the gate: their hooks' input, what is asked, and the answers. `hooks` runs the
//! processes.

mod edits;
mod found;
mod inputs;
mod parts;
mod paths;
mod policy;
mod project;
mod recorded;
mod rules;
mod words;
