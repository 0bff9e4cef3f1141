//! `idempotent`: looks into a store, and settles by hand what no call will settle.

mod arguments;
mod commands;
mod show;

use std::process::ExitCode;

use clap::Parser;

use arguments::Arguments;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match commands::run(Arguments::parse()).await {
        Ok(done) if done => ExitCode::SUCCESS,
        // What was asked for is not there, has changed meanwhile, or is not in order; the output says which.
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            let said = error.to_string();
            eprintln!("idempotent: {said}");
            let mut source = error.source();
            while let Some(cause) = source {
                // The error of a store says its cause itself.
                if !said.contains(&cause.to_string()) {
                    eprintln!("  because: {cause}");
                }
                source = cause.source();
            }
            ExitCode::from(2)
        }
    }
}
