//! "Did you mean": the nearest valid name, and lists of names for messages.

/// The candidate that `word` was probably meant to be.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may be wrong; more than that is another word.
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `` `a`, `b`, `c` ``
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Levenshtein's distance, one row at a time.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.chars().count()).collect();
    for (line, from) in left.chars().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(right.chars()) {
            let changed = diagonal + usize::from(from != to);
            diagonal = *cell;
            *cell = changed.min(diagonal + 1).min(before + 1);
            before = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("ttl", "ttl"), 0);
        assert_eq!(distance("tttl", "ttl"), 1);
    }

    #[test]
    fn near_misses_only() {
        assert_eq!(closest("tttl", ["key", "ttl"]), Some("ttl"));
        assert_eq!(closest("banana", ["key", "ttl"]), None);
    }
}
