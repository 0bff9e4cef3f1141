//! Ratios instead of times: a machine that other work slows down slows both sides of a ratio.

#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a benchmark stops where something is not as expected"
)]

use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};

pub(crate) mod shop;

/// One side of a comparison: does its work so many times, and says how long that took. What it prepares is not in it.
pub(crate) type Side<'a> = (&'a str, &'a mut dyn FnMut(u64) -> Duration);

/// So many operations of one side are made before it is the turn of the next.
const TURN: u64 = 128;

/// Measures how often as long `ours` takes as all of `theirs` together, each of which is measured by itself.
///
/// The sides take turns of a millisecond or less, and the median of its turns counts for each: the few in which the
/// system did something else say nothing of either. What criterion shows as the time of the benchmark is the ratio; the
/// line after it says what each side took.
pub(crate) fn compare(c: &mut Criterion<Ratio>, name: &str, ours: Side<'_>, theirs: &mut [Side<'_>]) {
    compare_in_turns(c, name, TURN, ours, theirs);
}

/// As [`compare`], in turns of so many operations.
pub(crate) fn compare_in_turns(
    c: &mut Criterion<Ratio>,
    name: &str,
    turn: u64,
    (ours, run_ours): Side<'_>,
    theirs: &mut [Side<'_>],
) {
    let mut samples: Vec<Vec<f64>> = Vec::new();
    group(c, |group| {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut times = vec![Vec::new(); 1 + theirs.len()];
                for _ in 0..iterations.div_ceil(turn) {
                    let others = theirs.iter_mut().map(|(_, run)| run(turn));
                    for (times, time) in times.iter_mut().zip(std::iter::once(run_ours(turn)).chain(others)) {
                        times.push(time.as_secs_f64() * 1e9 / count(turn));
                    }
                }
                let each: Vec<f64> = times.into_iter().map(median).collect();
                let ratio = each[0] / each[1..].iter().sum::<f64>();
                samples.push([vec![ratio], each].concat());
                ratio * count(iterations)
            });
        });
    });
    if samples.is_empty() {
        return;
    }
    let middle = |column: usize| median(samples.iter().map(|sample| sample[column]).collect());
    let others: Vec<String> = theirs
        .iter()
        .enumerate()
        .map(|(index, (name, _))| format!("{name} {}", nanoseconds(middle(index + 2))))
        .collect();
    println!("{name}: median {:.2}x; {ours} {}; {}\n", middle(0), nanoseconds(middle(1)), others.join(" + "));
}

/// Benchmarks of a ratio that is measured otherwise: `measure` gives one.
pub(crate) fn ratio(c: &mut Criterion<Ratio>, name: &str, mut measure: impl FnMut() -> f64) {
    let mut samples = Vec::new();
    group(c, |group| {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let ratio = measure();
                samples.push(ratio);
                ratio * count(iterations)
            });
        });
    });
    if !samples.is_empty() {
        println!("{name}: median {:.2}x\n", median(samples));
    }
}

fn group(c: &mut Criterion<Ratio>, run: impl FnOnce(&mut BenchmarkGroup<'_, Ratio>)) {
    let mut group = c.benchmark_group(env!("CARGO_CRATE_NAME"));
    group.sampling_mode(SamplingMode::Flat);
    run(&mut group);
    group.finish();
}

/// Criterion set up for ratios, `samples` of them, and with the options of the command line.
pub(crate) fn criterion(samples: usize, time: Duration) -> Criterion<Ratio> {
    Criterion::default()
        .with_measurement(Ratio)
        .sample_size(samples)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(time)
        .configure_from_args()
}

/// The one in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A span, in the unit that suits it.
pub(crate) fn nanoseconds(value: f64) -> String {
    match value {
        ..1e3 => format!("{value:.0} ns"),
        ..1e6 => format!("{:.2} µs", value / 1e3),
        _ => format!("{:.2} ms", value / 1e6),
    }
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "counts are far below 2^52")]
pub(crate) fn count(count: u64) -> f64 {
    count as f64
}

/// A measurement whose values are ratios. Only `iter_custom` makes any.
#[derive(Debug)]
pub(crate) struct Ratio;

impl Measurement for Ratio {
    type Intermediate = ();
    type Value = f64;

    fn start(&self) {}
    fn end(&self, (): ()) -> f64 {
        f64::NAN
    }
    fn add(&self, one: &f64, other: &f64) -> f64 {
        one + other
    }
    fn zero(&self) -> f64 {
        0.0
    }
    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        &Times
    }
}

struct Times;

impl ValueFormatter for Times {
    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        "x"
    }
    fn scale_throughputs(&self, _: f64, _: &Throughput, _: &mut [f64]) -> &'static str {
        "x"
    }
    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "x"
    }
}
