//! What goes wrong among peers.

use catena_space::time::Micros;

/// What goes wrong, and how often.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// So many peers of a thousand die each minute.
    pub churn: f64,
    /// How long it takes until they come back, or others in their place.
    pub absence: Micros,
    /// They come back with what they had written down; otherwise others come, who know nothing.
    pub returns: bool,
    /// From when to when this part of the peers, of a hundred, hears nothing of the others.
    pub cut: Option<(Micros, Micros, u64)>,
    /// So many messages of a thousand get lost.
    pub loss: u64,
    /// So many messages of a thousand are late by up to this time.
    pub late: (u64, Micros),
    /// So many peers of a thousand stand still each minute, for up to this time.
    pub pauses: (f64, Micros),
    /// So often of a thousand times somebody wants what a task has given, nobody has it any more.
    pub lost: u64,
    /// Nothing goes wrong any more after this time.
    pub until: Option<Micros>,
}
