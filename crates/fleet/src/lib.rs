//! Gets and releases agents.
