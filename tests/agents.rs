//! Agents behind the gate: what their hooks say, what is asked, and how they are answered.

mod edits;
mod failing;
mod gate;
mod paths;
mod policy;
mod process;
mod real;
mod recorded;
mod words;
