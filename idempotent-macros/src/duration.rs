//! Durations as users write them: `"24h"`, `"500ms"`, `"1h 30m"`. Read at compile time, to milliseconds.

const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// What words for units begin with. `mo` is none of them: a month has no fixed length.
const SPELLED_OUT: [(&str, &str); 7] =
    [("mil", "ms"), ("mse", "ms"), ("s", "s"), ("mi", "m"), ("h", "h"), ("d", "d"), ("w", "w")];

/// Past this, a store could not add the duration to the time of day; nobody means it.
const LONGEST: u64 = 100 * 366 * 86_400_000;

/// The milliseconds in `text`, or what is wrong with it.
pub(crate) fn milliseconds(text: &str) -> Result<u64, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("is empty; write a number and a unit, for example `24h`".into());
    }
    let mut total: u64 = 0;
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after.trim_start(), |c| !c.is_alphabetic());
        rest = after.trim_start();
        let scale = scale(text, number, unit, rest)?;
        if scale >= last {
            return Err(format!(
                "has its units out of order in `{text}`; write the larger unit first, each once"
            ));
        }
        last = scale;
        total = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(scale))
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= LONGEST)
            .ok_or_else(|| format!("is too long: `{text}` is more than 100 years"))?;
    }
    if total == 0 { Err("must be longer than zero".into()) } else { Ok(total) }
}

fn scale(text: &str, number: &str, unit: &str, rest: &str) -> Result<u64, String> {
    if number.is_empty() {
        return Err(format!("is no duration: `{text}`; write a number and a unit, for example `24h`"));
    }
    if unit.is_empty() && rest.starts_with(['.', ',']) {
        return Err(format!("takes whole numbers, not `{text}`; use a smaller unit, for example `1h 30m`"));
    }
    if unit.is_empty() {
        return Err(format!("needs a unit, for example `{number}s`"));
    }
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(|| {
        let units = crate::suggest::list(UNITS.iter().rev().map(|(name, _)| *name));
        let meant = SPELLED_OUT.iter().find(|(word, _)| unit.to_lowercase().starts_with(word));
        let meant = meant.map(|(_, unit)| format!("did you mean `{unit}`? ")).unwrap_or_default();
        format!("has the unknown unit `{unit}`; {meant}the units are {units}")
    })
}

fn split_where(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads() {
        assert_eq!(milliseconds("24h"), Ok(86_400_000));
        assert_eq!(milliseconds("500ms"), Ok(500));
        assert_eq!(milliseconds(" 1h 30m "), Ok(5_400_000));
        assert_eq!(milliseconds("1h30m"), Ok(5_400_000));
        assert_eq!(milliseconds("30 s"), Ok(30_000));
        assert_eq!(milliseconds("2w"), Ok(1_209_600_000));
    }

    #[test]
    fn refuses() {
        for (text, word) in [
            ("", "empty"),
            ("  ", "empty"),
            ("60", "needs a unit"),
            ("24 hourz", "unknown unit `hourz`"),
            ("0s", "longer than zero"),
            ("0h 0m", "longer than zero"),
            ("h", "no duration"),
            ("-1s", "no duration"),
            ("1.5h", "whole numbers"),
            ("1h 1h", "out of order"),
            ("30m 1h", "out of order"),
            ("99999999999999999999s", "too long"),
            ("18446744073709551615w", "too long"),
            ("101w 99999999d", "too long"),
            ("1hé", "unknown unit"),
            ("1é", "unknown unit"),
            ("1h,", "no duration"),
        ] {
            let message = milliseconds(text).expect_err(text);
            assert!(message.contains(word), "{text}: {message}");
        }
    }
}
