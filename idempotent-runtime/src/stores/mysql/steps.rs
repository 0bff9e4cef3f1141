//! The steps of a record, as its row keeps them: one after the other in one column, so that a record is one row.
//!
//! Each is the length of its name (2 bytes) and of its result (4 bytes, all ones while it has only begun), both with the
//! most significant byte first, then the name and the result. The blocks of the server read the same form.

use std::sync::Arc;

use crate::store::{Step, StepState};

/// In place of the length of the result of a step that has only begun.
const BEGUN: u32 = u32::MAX;

/// The bytes of one step; `None` when its name or its result is too long for them.
pub(super) fn encode(step: &Step) -> Option<Vec<u8>> {
    let name = u16::try_from(step.name.len()).ok()?;
    let (length, result): (u32, &[u8]) = match &step.state {
        StepState::Begun => (BEGUN, &[]),
        StepState::Done(result) => (u32::try_from(result.len()).ok().filter(|len| *len < BEGUN)?, result),
    };
    let mut bytes = Vec::with_capacity(6 + step.name.len() + result.len());
    bytes.extend_from_slice(&name.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(step.name.as_bytes());
    bytes.extend_from_slice(result);
    Some(bytes)
}

/// The steps in a column.
pub(super) fn decode(mut bytes: &[u8]) -> Result<Vec<Step>, &'static str> {
    let mut steps = Vec::new();
    while !bytes.is_empty() {
        let (step, rest) = first(bytes).ok_or("steps")?;
        steps.push(step);
        bytes = rest;
    }
    Ok(steps)
}

fn first(bytes: &[u8]) -> Option<(Step, &[u8])> {
    let (name, bytes) = bytes.split_first_chunk::<2>()?;
    let (length, bytes) = bytes.split_first_chunk::<4>()?;
    let (name, bytes) = bytes.split_at_checked(u16::from_be_bytes(*name).into())?;
    let name: Arc<str> = std::str::from_utf8(name).ok()?.into();
    let length = u32::from_be_bytes(*length);
    if length == BEGUN {
        return Some((Step { name, state: StepState::Begun }, bytes));
    }
    let (result, bytes) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    Some((Step { name, state: StepState::Done(result.into()) }, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_back_as_they_were_and_damage_is_seen() {
        let steps = vec![
            Step { name: "größe".into(), state: StepState::Begun },
            Step { name: "".into(), state: StepState::Done([0, 255].as_slice().into()) },
            Step { name: "x".into(), state: StepState::Done([].as_slice().into()) },
        ];
        let bytes: Vec<u8> = steps.iter().filter_map(encode).flatten().collect();
        assert_eq!(decode(&bytes), Ok(steps));
        assert_eq!(decode(&[]), Ok(vec![]));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Err("steps"));
        assert_eq!(decode(&[0, 1, 0, 0, 0, 0, 0xff]), Err("steps"), "a name is UTF-8");
        assert_eq!(decode(&[0, 0, 0, 0, 0, 9, 1]), Err("steps"));
        assert_eq!(encode(&Step { name: "n".repeat(70_000).into(), state: StepState::Begun }), None);
    }
}
