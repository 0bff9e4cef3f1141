//! The statements of calls in a transaction of the caller's.

use std::sync::Arc;

use super::routine::{NOW, common};
use crate::stores::sql::Names;

/// The statements, made once for a store.
#[derive(Debug)]
pub(super) struct Ground {
    /// Whether there is a transaction, whether it sees what others commit, and the record.
    pub(super) look: Arc<str>,
    /// The record, locked.
    pub(super) lock: Arc<str>,
    /// Adds a record if there is none; then the last id is its fence. The record is running with its lease over and its
    /// effects begun: what the caller sees committed if the call is dropped and the transaction goes on.
    pub(super) insert: Arc<str>,
    pub(super) replace: Arc<str>,
    pub(super) follow: Arc<str>,
    pub(super) exhaust: Arc<str>,
    pub(super) settle: Arc<str>,
    /// Deletes the record of a first attempt.
    pub(super) undo: Arc<str>,
    pub(super) is_there: Arc<str>,
    /// Whether a statement can have a time of its own for locks, as those of MariaDB can.
    pub(super) maria: bool,
}

impl Ground {
    pub(super) fn new(names: &Names, maria: bool) -> Self {
        let render = |text: &str| names.render(&common(text).replace("__now", NOW));
        // No variable says the same on both servers. What is not known here is asked before.
        let session = if maria { "@@in_transaction OR NOT @@autocommit, @@tx_isolation" } else { "1, ''" };
        Self {
            look: render(&format!(
                "SELECT {{RECORD}}, {session}, {{key}} IS NOT NULL \
                 FROM (SELECT 1) AS one LEFT JOIN {{table}} ON {{key}} = ?"
            ))
            .into(),
            lock: render("SELECT {RECORD} FROM {table} WHERE {key} = ? FOR UPDATE").into(),
            insert: render(
                "INSERT INTO {table} ({key}, {operation}, {version}, {state}, {owner}, {attempt}, {fence}, \
                 {fingerprint_version}, {fingerprint}, {effects_begun}, {lease_until}, {created_at}, \
                 {expires_at}) VALUES (?, ?, 1, 'running', ?, 1, LAST_INSERT_ID(__now), ?, ?, 1, __now, __now, \
                 __now + ?) ON DUPLICATE KEY UPDATE {attempt} = {attempt} + LAST_INSERT_ID(0)",
            )
            .into(),
            replace: render(
                "UPDATE {table} SET {operation} = ?, {state} = 'running', {owner} = ?, {attempt} = 1, \
                 {fence} = LAST_INSERT_ID(GREATEST({fence} + 1, __now)), {fingerprint_version} = ?, \
                 {fingerprint} = ?, {effects_begun} = 1, {lease_until} = __now, {created_at} = __now, \
                 {expires_at} = __now + ?, {result_version} = NULL, {result} = NULL, {steps} = NULL WHERE {key} = ?",
            )
            .into(),
            follow: render(
                "UPDATE {table} SET {owner} = ?, {attempt} = {attempt} + 1, \
                 {fence} = LAST_INSERT_ID(GREATEST({fence} + 1, __now)), {effects_begun} = 1, \
                 {lease_until} = __now, {expires_at} = __now + ? WHERE {key} = ?",
            )
            .into(),
            exhaust: render(
                "UPDATE {table} SET {owner} = ?, {state} = 'unknown', {lease_until} = NULL, \
                 {expires_at} = __now + ? WHERE {key} = ?",
            )
            .into(),
            settle: render(
                "UPDATE {table} SET {state} = ?, {result_version} = ?, {result} = ?, {lease_until} = NULL, \
                 {expires_at} = __now + ? WHERE {key} = ? AND {owner} = ? AND {state} = 'running'",
            )
            .into(),
            undo: render(
                "DELETE FROM {table} WHERE {key} = ? AND {owner} = ? AND {attempt} = 1 AND {state} = 'running'",
            )
            .into(),
            is_there: render("SELECT COUNT(*) FROM {table} WHERE {key} = ? AND {owner} = ?").into(),
            maria,
        }
    }
}
