//! Drives the `catena` command the way people do, with real processes and real files.

mod bad_input;
mod dagman;
mod dagrun;
mod examples;
mod language;
mod project;
mod react;
mod recorded;
mod resume;
mod run;
mod simulate;
mod space;
