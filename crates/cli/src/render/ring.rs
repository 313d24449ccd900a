//! A group of peers as a ring.

use crate::render::graph::escape;
use catena_peer::Status;
use std::fmt::Write;

const SIZE: f64 = 720.0;
const RADIUS: f64 = 220.0;

/// Peers at their places on the ring. The larger one is, the more molecules it keeps; the darker, the busier it is.
pub(crate) fn svg(peers: &[Status]) -> String {
    let middle = SIZE / 2.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <circle cx=\"{middle}\" cy=\"{middle}\" r=\"{RADIUS}\" fill=\"none\" stroke=\"#bbb\" stroke-width=\"2\"/>\n"
    );
    let (molecules, leads) = peers.iter().fold((0, 0), |sum, p| (sum.0 + p.molecules, sum.1 + p.leads));
    let running: usize = peers.iter().map(|p| p.running).sum();
    let lines = [
        format!("{} peers", peers.len()),
        format!("{running} tasks run"),
        format!("{leads} molecules, {molecules} copies"),
    ];
    for (n, line) in lines.iter().enumerate() {
        let y = middle + 20.0 * (n as f64 - 0.7);
        let _ = writeln!(
            out,
            "<text x=\"{middle}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"15\">{line}</text>"
        );
    }
    let most = peers.iter().map(|p| p.molecules).max().unwrap_or(0).max(1) as f64;
    for peer in peers {
        let place = u64::from_str_radix(&peer.peer, 16).unwrap_or(0) as f64 / 2f64.powi(64);
        let (sin, cos) = (place * std::f64::consts::TAU).sin_cos();
        let at = |radius: f64| (middle + radius * sin, middle - radius * cos);
        let (x, y) = at(RADIUS);
        let size = 6.0 + 12.0 * (peer.molecules as f64 / most).sqrt();
        let busy = 1.0 - peer.cpus.0 / peer.cpus.1.max(f64::MIN_POSITIVE);
        let light = 88.0 - 50.0 * busy.clamp(0.0, 1.0);
        let address = escape(&peer.address);
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size:.1}\" fill=\"hsl(212,60%,{light:.0}%)\" stroke=\"#234\">\
             <title>{} {address}: {} tasks run, {} of {} cpus are free; {} molecules, of which it leads {}; {} in the index</title></circle>",
            peer.peer, peer.running, peer.cpus.0, peer.cpus.1, peer.molecules, peer.leads, peer.entries
        );
        let (x, y) = at(RADIUS + 26.0);
        let anchor = if sin > 0.2 {
            "start"
        } else if sin < -0.2 {
            "end"
        } else {
            "middle"
        };
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{address}</text>",
            y + 4.0
        );
    }
    out + "</svg>\n"
}
