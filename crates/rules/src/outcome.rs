//! What a run comes to.

use crate::eval::Fault;
use crate::rule::Rule;
use crate::value::Value;
use catena_model::Diagnostic;

/// A reaction that has happened.
#[derive(Debug)]
pub struct Reaction<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// What is gone.
    pub consumed: &'r [Value],
    /// What has come.
    pub produced: &'r [Value],
    /// How many solutions this one is inside of.
    pub depth: usize,
}

/// How a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing can react any more.
    Inert {
        /// How many reactions there were.
        reactions: u64,
    },
    /// The limit was reached.
    Limit {
        /// How many reactions there were.
        reactions: u64,
        /// The rule that has fired most often of late.
        rule: String,
    },
}

impl Outcome {
    /// How many reactions there were.
    pub fn reactions(&self) -> u64 {
        match self {
            Self::Inert { reactions } | Self::Limit { reactions, .. } => *reactions,
        }
    }

    /// Whether nothing can react any more.
    pub fn is_inert(&self) -> bool {
        matches!(self, Self::Inert { .. })
    }
}

/// An expression had no value. The molecules are as they were before the reaction that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{rule}: {fault}")]
pub struct RunError {
    /// What went wrong, and where it is written.
    pub fault: Fault,
    /// The rule.
    pub rule: String,
    /// How many reactions there were before.
    pub reactions: u64,
}

impl RunError {
    /// As a problem of the program.
    pub fn diagnostic(&self) -> Diagnostic {
        self.fault.diagnostic(Some(&self.rule))
    }
}
