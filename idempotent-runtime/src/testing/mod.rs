//! For tests of applications and of stores: a conformance suite, a manual clock, a store with faults.
