//! Tests of editing together.

mod changes;
mod check;
mod explore;
mod meaning;
mod paper;
