//! Redirects, which are followed below the middleware.

use http::StatusCode;
use reqwest::redirect::Policy;

/// Follows a redirect only where method, content and key stay with the same origin: 307 and 308. Every other is the answer.
///
/// `reqwest` keeps headers on a redirect, so without this a key could go to another origin, or with a GET that was a POST.
pub fn redirects() -> Policy {
    Policy::custom(|attempt| {
        let keeps =
            matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
        if attempt.previous().len() > 10 {
            attempt.error("too many redirects")
        } else if keeps && same {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}
