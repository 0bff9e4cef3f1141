//! Processes that are killed at any moment, and others that take over.

use std::io;
use std::process::Child;
use std::time::Duration;

/// Starts so many workers, kills so many at random moments, each of them followed by another one, and lets the last ones end.
/// Whether these ended well.
///
/// # Errors
/// When a process cannot be started or killed.
pub async fn kill_and_let_end(
    mut start: impl FnMut() -> io::Result<Child>,
    workers: usize,
    kills: u32,
) -> io::Result<bool> {
    let mut running = Vec::new();
    for _ in 0..workers.max(1) {
        running.push(start()?);
    }
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(rand::random_range(10..120))).await;
        let mut oldest = running.remove(0);
        let sent = oldest.kill();
        oldest.wait()?;
        // One that has nothing left to do has ended by itself.
        sent?;
        running.push(start()?);
    }
    let mut ended_well = true;
    for mut worker in running {
        ended_well &= worker.wait()?.success();
    }
    Ok(ended_well)
}
