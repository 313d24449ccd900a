//! Editing together: hierarchical workflows, who may change which part of them, and what became of every change.
//!
//! - [`model`] has compositions: workflows with an interface and a body, put together by reference; whether they are
//!   well-formed, and what they mean in the ordinary language.
//! - [`lock`] has the granular locks: modes, units, entries and what follows from them, waiting, leases.
//! - [`room`] has one composition and those who edit it together: operations, undo, versions, who is there.

pub mod lock;
pub mod model;
pub mod room;
