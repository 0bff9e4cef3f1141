//! Asks rust-analyzer, as an editor does, about annotated functions: what it completes, shows and finds.
//!
//! `tests/editor/check` runs it, with the folder of the crate in `tests/editor/annotated` as its argument.

#![allow(missing_docs, reason = "a test program")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "it ends where something is amiss"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last: u32,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new("rust-analyzer")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("rust-analyzer is installed");
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, to, from, last: 0 };
        server.ask(
            "initialize",
            &json!({
                "processId": std::process::id(),
                "rootUri": uri(folder),
                "capabilities": { "experimental": { "serverStatusNotification": true } },
                "initializationOptions": { "checkOnSave": false, "cachePriming": { "enable": false } },
            }),
        );
        server.send(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
        server
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.to.flush().unwrap();
    }

    /// The next message. Questions of the server are answered with nothing.
    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "rust-analyzer has ended");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut text = vec![0; length];
        self.from.read_exact(&mut text).unwrap();
        let message: Value = serde_json::from_slice(&text).unwrap();
        if message.get("method").is_some() && message.get("id").is_some() {
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": null }));
        }
        message
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message.get("method").is_none() && message["id"] == json!(id) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Until the crate is loaded and its macros are built.
    fn wait_until_loaded(&mut self) {
        loop {
            let message = self.receive();
            if message["method"] == "experimental/serverStatus"
                && message["params"]["quiescent"] == json!(true)
            {
                assert_eq!(message["params"]["health"], "ok", "{message}");
                return;
            }
        }
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// The place behind `text`, in the line that has the comment `// mark`.
fn place(source: &str, mark: &str, text: &str) -> Value {
    let (number, line) =
        source.lines().enumerate().find(|(_, line)| line.ends_with(&format!("// {mark}"))).unwrap();
    let column = line.find(text).unwrap() + text.len();
    json!({ "line": number, "character": column })
}

fn main() {
    let folder = std::env::args().nth(1).expect("the folder of the crate");
    let folder = Path::new(&folder).canonicalize().unwrap();
    let file = folder.join("src/lib.rs");
    let source = std::fs::read_to_string(&file).unwrap();
    let mut server = Server::start(&folder);
    server.wait_until_loaded();
    let document = json!({ "uri": uri(&file), "languageId": "rust", "version": 1, "text": source });
    server.send(
        &json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": document } }),
    );
    let mut at = |method: &str, mark: &str, text: &str| {
        let position = place(&source, mark, text);
        server.ask(method, &json!({ "textDocument": { "uri": uri(&file) }, "position": position }))
    };

    for (mark, text) in [
        ("half a body", "order."),
        ("half a key", "order.r"),
        ("half a store", "self.i"),
        ("beside a mistake", "order."),
        ("half an attribute", "order."),
    ] {
        let answer = at("textDocument/completion", mark, text).to_string();
        let expected = if text == "self.i" { "\"idempotency\"" } else { "\"reference\"" };
        assert!(answer.contains(expected), "{mark}: {answer}");
    }

    let shown = at("textDocument/hover", "whole", "order").to_string();
    assert!(shown.contains("order: Order"), "{shown}");
    let shown = at("textDocument/hover", "signature", "charge").to_string();
    assert!(shown.contains("async fn charge(order: Order) -> Result<u32, Error>"), "{shown}");
    assert!(shown.contains("Charges an order."), "{shown}");

    for (mark, text, found) in [
        ("whole", "order.refer", "the field"),
        ("a key", "order.refer", "the field"),
        ("a key", "ord", "signature"),
        ("a call", "char", "signature"),
    ] {
        let answer = at("textDocument/definition", mark, text);
        let target = answer.get(0).unwrap_or(&answer);
        let range = target.get("targetSelectionRange").or_else(|| target.get("range")).unwrap();
        assert_eq!(range["start"]["line"], place(&source, found, "")["line"], "{mark}: {answer}");
    }

    server.ask("shutdown", &Value::Null);
    server.send(&json!({ "jsonrpc": "2.0", "method": "exit" }));
    server.child.wait().unwrap();
    println!("editor: completed, shown and found");
}
