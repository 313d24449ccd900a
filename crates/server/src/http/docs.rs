//! The description of the interface, for programs and for people.

use super::{Front, openapi};
use axum::Json;
use axum::response::Html;
use axum::routing::get;
use std::sync::Arc;

pub(super) fn router() -> axum::Router<Arc<Front>> {
    axum::Router::new()
        .route("/openapi.json", get(|| async { Json(openapi()) }))
        .route("/docs", get(|| async { Html(page()) }))
}

/// A page that needs nothing from elsewhere.
fn page() -> String {
    let api = openapi();
    let mut rows = String::new();
    for (path, methods) in api["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let summary = operation["summary"].as_str().unwrap_or_default();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<String> = parameters
                .map(|p| {
                    let name = escape(p["name"].as_str().unwrap_or_default());
                    let text = escape(p["description"].as_str().unwrap_or_default());
                    format!("<li><code>{name}</code> {text}</li>")
                })
                .collect();
            rows += &format!(
                "<section><h2><b class=\"{method}\">{}</b> <code>{}</code></h2><p>{}</p><ul>{}</ul></section>\n",
                method.to_uppercase(),
                escape(path),
                escape(summary),
                parameters.join("")
            );
        }
    }
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Catena: HTTP interface</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>\
         :root {{ color-scheme: light dark }} body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }}\
         h2 {{ font-size: 1rem; margin: 1.5rem 0 0 }} p {{ margin: 0 }} ul {{ margin: .2rem 0; padding-left: 1.2rem; color: gray }}\
         b {{ display: inline-block; min-width: 4.5rem }} .get {{ color: #2a7ab8 }} .post {{ color: #2c8a4b }} .delete {{ color: #c0392b }} .put {{ color: #b8860b }}\
         </style></head><body><h1>Catena {}</h1><p>Every request carries <code>Authorization: Bearer TOKEN</code>. \
         For programs: <a href=\"openapi.json\">openapi.json</a>.</p>\n{rows}</body></html>",
        env!("CARGO_PKG_VERSION")
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
