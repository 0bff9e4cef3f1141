//! Scripts: run by their digest, and by their text where the server does not have them yet.

use redis::{Cmd, RedisResult, ServerErrorKind, Value};

use super::link::Link;

/// A script of the server, and its digest.
#[derive(Debug)]
pub(super) struct Script {
    text: String,
    digest: String,
}

/// Every script of a store. Made once.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) reserve: Script,
    pub(super) renew: Script,
    pub(super) complete: Script,
    pub(super) release: Script,
    pub(super) put_step: Script,
    pub(super) load: Script,
    pub(super) resolve: Script,
    pub(super) forget: Script,
    pub(super) watch: Script,
    pub(super) probe: Script,
}

impl Scripts {
    /// The scripts of a store that tells of changes on `channel`.
    pub(super) fn new(channel: &str) -> Self {
        let head = format!("local CHANNEL = {}\n", quoted(channel));
        let record = include_str!("lua/record.lua");
        let plain = |body: &str| Script::new(format!("{head}{body}"));
        let with_record = |body: &str| Script::new(format!("{head}{record}{body}"));
        Self {
            reserve: with_record(include_str!("lua/reserve.lua")),
            renew: with_record(include_str!("lua/renew.lua")),
            complete: plain(include_str!("lua/complete.lua")),
            release: with_record(include_str!("lua/release.lua")),
            put_step: with_record(include_str!("lua/put_step.lua")),
            load: with_record(include_str!("lua/load.lua")),
            resolve: with_record(include_str!("lua/resolve.lua")),
            forget: with_record(include_str!("lua/forget.lua")),
            watch: with_record(include_str!("lua/watch.lua")),
            probe: plain(include_str!("lua/probe.lua")),
        }
    }
}

/// `text` as Lua writes it, whatever is in it.
fn quoted(text: &str) -> String {
    let escaped: Vec<String> = text.bytes().map(|byte| format!("\\{byte:03}")).collect();
    format!("'{}'", escaped.concat())
}

impl Script {
    fn new(text: String) -> Self {
        let digest = redis::Script::new(&text).get_hash().to_owned();
        Self { text, digest }
    }

    /// Runs it on `key`, with what `arguments` adds. One round trip, unless the server has forgotten the script.
    pub(super) async fn run(
        &self,
        link: &Link,
        key: &[u8],
        arguments: impl Fn(&mut Cmd) + Send,
    ) -> RedisResult<Value> {
        let command = |name: &str, script: &str| {
            let mut command = Cmd::with_capacity(10, 256 + script.len());
            command.arg(name).arg(script).arg(1).arg(key);
            arguments(&mut command);
            command
        };
        match link.ask(&command("EVALSHA", &self.digest)).await {
            Err(error) if error.kind() == ServerErrorKind::NoScript.into() => {
                link.ask(&command("EVAL", &self.text)).await
            }
            answer => answer,
        }
    }
}
