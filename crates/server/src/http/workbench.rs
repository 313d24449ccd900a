//! The workbench: pages for people who would rather look.

use super::Front;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use catena_workbench::{Asset, asset};
use std::sync::Arc;

/// Pages load nothing from elsewhere, and nobody else shows them in a frame.
const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; \
    connect-src 'self'; worker-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn router() -> axum::Router<Arc<Front>> {
    axum::Router::new()
        .route("/", get(|| async { Redirect::temporary("/ui/") }))
        .route("/ui", get(|| async { Redirect::permanent("/ui/") }))
        .route("/ui/", get(|headers: HeaderMap| async move { page("index.html", &headers) }))
        .route(
            "/ui/{*path}",
            get(|Path(path): Path<String>, headers: HeaderMap| async move { page(&path, &headers) }),
        )
}

/// A file of the workbench. Whatever is no file is a place within it, which the first page finds.
fn page(path: &str, headers: &HeaderMap) -> Response {
    let found = asset(path).or_else(|| (!path.starts_with("assets/")).then(|| asset("index.html")).flatten());
    let Some(Asset { kind, tag, bytes, is_gzip, is_named_by_content }) = found else {
        return (StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    let tag = format!("\"{tag}\"");
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == *tag) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let keep = if is_named_by_content { "public, max-age=31536000, immutable" } else { "no-cache" };
    let about = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, keep),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    let mut response = ([(header::ETAG, tag)], about, bytes).into_response();
    if is_gzip {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}
