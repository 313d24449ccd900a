//! The time, and durations as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(crate) fn now_millis() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

/// A duration in milliseconds.
pub(crate) fn duration(millis: f64) -> String {
    let seconds = millis / 1e3;
    if millis < 1.0 {
        format!("{:.0} µs", millis * 1e3)
    } else if seconds < 1.0 {
        format!("{millis:.0} ms")
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else if seconds < 3600.0 {
        format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), (seconds % 60.0).floor())
    } else {
        format!("{:.0} h {:02.0} min", (seconds / 3600.0).floor(), (seconds % 3600.0 / 60.0).floor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_choose_their_unit() {
        assert_eq!(duration(0.5), "500 µs");
        assert_eq!(duration(1234.0), "1.2 s");
        assert_eq!(duration(61_000.0), "1 min 01 s");
    }
}
