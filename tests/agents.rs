//! Agents behind the gate: what their hooks say, what is asked, and how they are answered.

mod edits;
mod failing;
mod gate;
mod inputs;
mod paths;
mod policy;
mod process;
mod recorded;
mod words;
