//! The steps in a row of the MySQL store.

#[path = "../../../idempotent-runtime/src/stores/mysql/steps.rs"]
mod steps;

pub(super) fn read(data: &[u8]) {
    if let Ok(read) = steps::decode(data) {
        let written: Vec<u8> =
            read.iter().flat_map(|step| steps::encode(step).expect("it was read")).collect();
        assert_eq!(written, data);
    }
}
