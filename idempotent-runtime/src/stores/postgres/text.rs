//! The statements. Every one decides and writes by itself, so that it can be run on any connection, also behind a proxy
//! that gives each statement another one.
//!
//! A statement takes its requests from `q`: one row of parameters, or, where requests of several callers are joined, one
//! row for each. Times are judged by `clock_timestamp()`, since `now()` stands still while a statement waits for a lock.

use sqlx::SqlStr;

use super::super::sql::Names;

/// A record that this version understands. What is not one is never written to.
const READABLE: &str = "(i.{version} = 1 AND i.{state} IN ('running', 'completed', 'failed', 'not_retained', 'unknown') \
     AND octet_length(i.{owner}) = 16 AND octet_length(i.{fingerprint}) = 32 AND i.{fence} >= 0 \
     AND i.{attempt} BETWEEN 0 AND 4294967295 AND (i.{lease_until} IS NOT NULL OR i.{state} <> 'running') \
     AND coalesce(cardinality(i.{step_names}), 0) = coalesce(cardinality(i.{step_results}), 0))";

/// The record is running under the request's token, and has not expired.
const OWNED: &str = "i.{key} = q.key AND i.{owner} = q.owner AND i.{version} = 1 AND i.{state} = 'running' \
     AND i.{expires_at} > clock_timestamp()";

/// Effects may have happened without a word of how they ended.
const IN_DOUBT: &str = "(i.{effects_begun} OR array_position(i.{step_results}, NULL) IS NOT NULL)";

const HAS_STEPS: &str = "(coalesce(cardinality(i.{step_names}), 0) > 0)";

const HAS_DONE_STEPS: &str =
    "EXISTS (SELECT FROM unnest(i.{step_results}) AS s (result) WHERE s.result IS NOT NULL)";

/// What a record that goes back to work keeps of its steps.
const ONLY_DONE_STEPS: &str = "{step_names} = (SELECT array_agg(s.name ORDER BY s.n) \
     FROM unnest(i.{step_names}, i.{step_results}) WITH ORDINALITY AS s (name, result, n) WHERE s.result IS NOT NULL), \
     {step_results} = array_remove(i.{step_results}, NULL)";

/// Tells the waiters of a record, if it has any, when the statement commits. The key is not shown to whoever listens.
const NOTIFY: &str = "CASE WHEN i.{watched} \
     THEN pg_notify('{channel}', encode(sha256(convert_to(i.{key}, 'UTF8')), 'hex')) IS NULL END";

/// The columns as they lie in the table.
const RAW: &str = "i.{key}, i.{operation}, i.{version}, i.{state}, i.{owner}, i.{attempt}, i.{fence}, \
     i.{fingerprint_version}, i.{fingerprint}, i.{effects_begun}, i.{lease_until}, i.{created_at}, i.{expires_at}, \
     i.{result_version}, i.{result}, i.{step_names}, i.{step_results}";

/// The columns as [`decode`](super::record::decode) reads them, from `i`, with spans from a point in time on.
const SHOWN: &str = "i.{key}, i.{operation}, i.{version}::bigint, i.{state}, i.{owner}, i.{attempt}::bigint, \
     i.{fence}::bigint, i.{fingerprint_version}::bigint, i.{fingerprint}, i.{effects_begun}, \
     (extract(epoch FROM i.{lease_until} - {as_of}) * 1000000)::bigint, \
     (extract(epoch FROM i.{created_at}) * 1000000)::bigint, \
     (extract(epoch FROM i.{expires_at} - {as_of}) * 1000000)::bigint, \
     i.{result_version}::bigint, i.{result}, i.{step_names}, i.{step_results}";

const CLOCK: &str = "clock AS MATERIALIZED (SELECT clock_timestamp() AS now)";

const NOW_MICROS: &str = "(extract(epoch FROM {now}) * 1000000)::bigint";

/// Makes a record where there is none, and shows the one that there is: what nearly every reservation needs, with as little
/// as possible for the server to make ready. A record in the way is not touched: no lock, and nothing in the log. What is
/// shown and not in the way is for [`RESERVE`]; where nothing is shown, a record came while the statement ran.
const TRY: &str = "WITH q AS NOT MATERIALIZED ({q}), {clock}, \
new AS (\
 INSERT INTO {table} AS i ({key}, {operation}, {state}, {owner}, {attempt}, {fence}, {fingerprint_version}, \
   {fingerprint}, {version}, {effects_begun}, {watched}, {lease_until}, {created_at}, {expires_at}) \
 SELECT q.key, q.operation, 'running', q.owner, 1, {clock_micros}, q.fpv, q.fp, 1, false, false, \
   clock.now + q.lease * interval '1 microsecond', clock.now, \
   clock.now + (q.lease + q.unknown) * interval '1 microsecond' \
 FROM clock CROSS JOIN q{order} \
 ON CONFLICT ({key}) DO NOTHING RETURNING i.{key}, i.{fence}) \
SELECT q.key, new.{fence}, {shown} FROM clock CROSS JOIN q LEFT JOIN new ON new.{key} = q.key \
 LEFT JOIN {table} AS i ON i.{key} = q.key AND new.{key} IS NULL";

/// Reads first: what a settled or living record answers is no write, takes no lock and makes no log. What is decided on
/// that reading is judged again on the row itself, under its lock; if it has changed meanwhile there is no answer, and
/// the statement is asked again.
const RESERVE: &str = "WITH q AS NOT MATERIALIZED ({q}), {clock}, \
seen AS MATERIALIZED (\
 SELECT {raw}, clock.now AS idempotent_now, (NOT {readable} OR (i.{expires_at} > clock.now \
   AND (i.{state} <> 'running' OR (i.{owner} <> q.owner \
    AND (i.{lease_until} > clock.now OR NOT {may_follow_q}))))) AS idempotent_held \
 FROM clock CROSS JOIN q JOIN {table} AS i ON i.{key} = q.key), \
got AS (\
 INSERT INTO {table} AS i ({key}, {operation}, {state}, {owner}, {attempt}, {fence}, {fingerprint_version}, \
   {fingerprint}, {version}, {effects_begun}, {watched}, {lease_until}, {created_at}, {expires_at}) \
 SELECT q.key, q.operation, 'running', q.owner, 1, {clock_micros}, q.fpv, q.fp, 1, {begun}, false, \
   clock.now + q.lease * interval '1 microsecond', clock.now, \
   clock.now + (q.lease + q.unknown) * interval '1 microsecond' \
 FROM clock CROSS JOIN q \
 WHERE NOT EXISTS (SELECT FROM seen WHERE seen.idempotent_held AND seen.{key} = q.key){order} \
 ON CONFLICT ({key}) DO UPDATE SET \
  ({operation}, {state}, {owner}, {attempt}, {fence}, {fingerprint_version}, {fingerprint}, {effects_begun}, \
   {watched}, {lease_until}, {created_at}, {expires_at}, {step_names}, {step_results}, {result_version}, {result}) = \
  (SELECT CASE v.verdict WHEN 'new' THEN excluded.{operation} ELSE i.{operation} END, \
    CASE v.verdict WHEN 'over' THEN 'unknown' ELSE 'running' END, \
    CASE v.verdict WHEN 'over' THEN '\\x00000000000000000000000000000000'::bytea ELSE excluded.{owner} END, \
    CASE v.verdict WHEN 'new' THEN 1 WHEN 'next' THEN i.{attempt} + 1 WHEN 'again' THEN greatest(i.{attempt}, 1) \
     ELSE i.{attempt} END, \
    CASE WHEN v.verdict IN ('new', 'next') THEN greatest(i.{fence} + 1, {verdict_micros}) ELSE i.{fence} END, \
    CASE v.verdict WHEN 'new' THEN excluded.{fingerprint_version} ELSE i.{fingerprint_version} END, \
    CASE v.verdict WHEN 'new' THEN excluded.{fingerprint} ELSE i.{fingerprint} END, \
    {begun} OR (v.verdict <> 'new' AND i.{effects_begun}), \
    v.verdict <> 'new' AND i.{watched}, \
    CASE WHEN v.verdict <> 'over' THEN v.now + (excluded.{lease_until} - excluded.{created_at}) END, \
    CASE v.verdict WHEN 'new' THEN v.now ELSE i.{created_at} END, \
    CASE v.verdict WHEN 'over' THEN v.now + (excluded.{expires_at} - excluded.{lease_until}) \
     ELSE v.now + (excluded.{expires_at} - excluded.{created_at}) END, \
    CASE WHEN v.verdict <> 'new' THEN i.{step_names} END, \
    CASE WHEN v.verdict <> 'new' THEN i.{step_results} END, \
    NULL::bigint, NULL::bytea \
   FROM (SELECT t.now, CASE WHEN i.{expires_at} <= t.now THEN 'new' WHEN i.{owner} = excluded.{owner} THEN 'again' \
     WHEN i.{attempt} >= $10 THEN 'over' ELSE 'next' END AS verdict \
    FROM (SELECT clock_timestamp() AS now OFFSET 0) AS t OFFSET 0) AS v) \
 WHERE {readable} AND (i.{expires_at} <= clock_timestamp() OR (i.{state} = 'running' AND (i.{owner} = excluded.{owner} \
  OR (i.{lease_until} <= clock_timestamp() AND {may_follow_excluded})))) \
 RETURNING {raw}, clock_timestamp() AS idempotent_now, CASE WHEN i.{state} = 'unknown' THEN {notify} END) \
SELECT true, {shown} FROM got AS i UNION ALL SELECT false, {shown} FROM seen AS i WHERE i.idempotent_held";

/// Of the same fingerprint, and allowed by the request's policy.
const MAY_FOLLOW: &str = "(i.{fingerprint} = {fp} AND i.{fingerprint_version} = {fpv} \
     AND ($8::boolean OR NOT {in_doubt}) AND (NOT $9::boolean OR {has_steps}))";

const RENEW: &str = "UPDATE {table} AS i SET {lease_until} = v.until, \
  {expires_at} = v.until + q.unknown * interval '1 microsecond', {effects_begun} = i.{effects_begun} OR q.effects \
 FROM ({q}) AS q CROSS JOIN LATERAL \
  (SELECT clock_timestamp() + q.lease * interval '1 microsecond' AS until OFFSET 0) AS v \
 WHERE {owned} RETURNING i.{key}, CASE WHEN q.lease = 0 THEN {notify} END";

/// A record that is settled under the request's token is written once more as it is, since an answer had been lost.
const COMPLETE: &str = "UPDATE {table} AS i SET \
  {state} = CASE i.{state} WHEN 'running' THEN q.state ELSE i.{state} END, \
  {result_version} = CASE i.{state} WHEN 'running' THEN q.result_version ELSE i.{result_version} END, \
  {result} = CASE i.{state} WHEN 'running' THEN q.result ELSE i.{result} END, \
  {expires_at} = CASE i.{state} WHEN 'running' THEN clock_timestamp() + q.keep * interval '1 microsecond' \
   ELSE i.{expires_at} END, \
  {lease_until} = NULL, \
  {step_names} = CASE WHEN q.state = 'unknown' OR i.{state} <> 'running' THEN i.{step_names} END, \
  {step_results} = CASE WHEN q.state = 'unknown' OR i.{state} <> 'running' THEN i.{step_results} END \
 FROM ({q}) AS q \
 WHERE i.{key} = q.key AND i.{owner} = q.owner AND i.{version} = 1 \
  AND i.{state} IN ('running', 'completed', 'failed', 'not_retained', 'unknown') \
  AND i.{expires_at} > clock_timestamp() \
 RETURNING i.{key}, {notify}";

const PUT_STEP: &str = "UPDATE {table} AS i SET {lease_until} = v.until, \
  {expires_at} = v.until + q.unknown * interval '1 microsecond', \
  {step_names} = CASE WHEN array_position(i.{step_names}, q.name) IS NULL \
   THEN array_append(i.{step_names}, q.name) ELSE i.{step_names} END, \
  {step_results} = CASE WHEN array_position(i.{step_names}, q.name) IS NULL THEN array_append(i.{step_results}, q.result) \
   WHEN i.{step_results}[array_position(i.{step_names}, q.name)] IS NOT NULL OR q.result IS NULL THEN i.{step_results} \
   ELSE i.{step_results}[1:array_position(i.{step_names}, q.name) - 1] || ARRAY[q.result] \
    || i.{step_results}[array_position(i.{step_names}, q.name) + 1:] END \
 FROM (SELECT $1::text AS key, $2::bytea AS owner, $3::text AS name, $4::bytea AS result, $5::bigint AS lease, \
   $6::bigint AS unknown) AS q \
  CROSS JOIN LATERAL (SELECT clock_timestamp() + q.lease * interval '1 microsecond' AS until OFFSET 0) AS v \
 WHERE {owned} \
 RETURNING nullif(i.{step_results}[array_position(i.{step_names}, q.name)], q.result)";

/// Deletes or changes a record under a condition, and says what was there if neither happened: whether it looked as if
/// it should have (then it has changed meanwhile, and the statement is asked again), and the record.
const CHANGE: &str = "WITH q AS NOT MATERIALIZED ({q}), {clock}, \
gone AS (DELETE FROM {table} AS i USING q, clock WHERE {condition} AND {deletable} RETURNING i.{key}, {notify}), \
kept AS (UPDATE {table} AS i SET {set} FROM q, clock WHERE {condition} AND NOT {deletable} RETURNING i.{key}, {notify}) \
SELECT true, false, {nothing} FROM (SELECT {key} FROM gone UNION ALL SELECT {key} FROM kept) AS done \
UNION ALL SELECT {recognised}, {condition}, {shown} FROM clock CROSS JOIN q JOIN {table} AS i ON i.{key} = q.key \
 WHERE (i.{expires_at} > clock.now OR NOT {readable}) AND NOT EXISTS (SELECT FROM gone) AND NOT EXISTS (SELECT FROM kept)";

const NOTHING: &str = "NULL::text, NULL::text, NULL::bigint, NULL::text, NULL::bytea, NULL::bigint, NULL::bigint, \
     NULL::bigint, NULL::bytea, NULL::boolean, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bytea, \
     NULL::text[], NULL::bytea[]";

const OWNER_ONLY: &str = "SELECT $1::text AS key, $2::bytea AS owner";

const RESOLVABLE: &str = "i.{key} = q.key AND i.{owner} = q.owner AND {readable} AND i.{expires_at} > clock_timestamp() \
     AND ((i.{state} = 'running' AND i.{lease_until} <= clock_timestamp()) OR i.{state} IN ('unknown', 'not_retained'))";

const FORGETTABLE: &str = "i.{key} = q.key AND i.{owner} = q.owner AND {readable} AND i.{expires_at} > clock_timestamp() \
     AND (i.{state} <> 'running' OR i.{lease_until} <= clock_timestamp())";

/// An expired record is shown too, with nothing left of its time.
const LOAD: &str = "SELECT {shown} \
 FROM {table} AS i CROSS JOIN (SELECT clock_timestamp() AS now OFFSET 0) AS clock WHERE i.{key} = $1::text";

/// In the order of the index: by operation, then by creation.
const LIST: &str = "WITH {clock} SELECT {shown} FROM clock CROSS JOIN {table} AS i \
 WHERE i.{expires_at} > clock.now{of_operation} AND ($2::text IS NULL OR i.{state} = $2::text) \
 AND (NOT $3::boolean OR i.{state} = 'unknown' OR (i.{state} = 'running' AND i.{lease_until} <= clock.now)) \
 AND ($4::text IS NULL OR (i.{operation}, i.{created_at}) >= ($4::text, {after_time})) \
 AND ($4::text IS NULL OR (i.{operation}, i.{created_at}, i.{key}) > ($4::text, {after_time}, $6::text)) \
 ORDER BY i.{operation}, i.{created_at}, i.{key} LIMIT $7::bigint";

/// Microseconds in whole and in part, since one number with a fraction would not be exact.
const AFTER_TIME: &str =
    "to_timestamp($5::bigint / 1000000) + ($5::bigint % 1000000) * interval '1 microsecond'";

/// Looks at the blocks of the table from one to another, so that no index has to say when records expire: such an index
/// would be written at every change.
const PURGE: &str = "DELETE FROM {table} AS d WHERE d.{key} = ANY (ARRAY(SELECT i.{key} FROM {table} AS i \
  WHERE i.ctid >= $1::text::tid AND i.ctid < $2::text::tid AND i.{expires_at} <= clock_timestamp() AND {readable} \
  LIMIT $3::bigint FOR UPDATE SKIP LOCKED)) AND d.{expires_at} <= clock_timestamp()";

/// How many blocks the table has; the largest of its partitions, if it has some.
const BLOCKS: &str = "SELECT coalesce(max(pg_relation_size(t.relid)), 0) / current_setting('block_size')::bigint \
 FROM (SELECT $1::text::regclass AS relid UNION ALL SELECT relid FROM pg_partition_tree($1::text::regclass) \
  WHERE isleaf) AS t";

/// Notes that somebody waits, so that whoever changes the record tells of it. Written once a record.
const WATCH: &str = "UPDATE {table} AS i SET {watched} = true \
 WHERE i.{key} = $1::text AND NOT i.{watched} AND i.{version} = 1 AND i.{state} = 'running'";

/// The statements for one table.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) try_new: SqlStr,
    pub(super) try_new_many: SqlStr,
    pub(super) reserve: SqlStr,
    pub(super) reserve_many: SqlStr,
    /// For a call in a transaction of the caller's: a new record, and one after a record whose lease is over.
    pub(super) fresh: SqlStr,
    pub(super) follow: SqlStr,
    pub(super) renew: SqlStr,
    pub(super) renew_many: SqlStr,
    pub(super) complete: SqlStr,
    pub(super) complete_many: SqlStr,
    pub(super) put_step: SqlStr,
    pub(super) release_forget: SqlStr,
    pub(super) release_unused: SqlStr,
    pub(super) release_abandon: SqlStr,
    pub(super) resolve_done: SqlStr,
    pub(super) resolve_not_done: SqlStr,
    pub(super) forget: SqlStr,
    pub(super) load: SqlStr,
    pub(super) list: SqlStr,
    pub(super) list_operation: SqlStr,
    pub(super) purge: SqlStr,
    pub(super) blocks: SqlStr,
    pub(super) watch: SqlStr,
}

/// Writes statements for one table and one channel.
struct Writer<'n> {
    names: &'n Names,
    channel: &'n str,
}

impl Writer<'_> {
    /// `template` with what belongs to it, then with what all have in common, then with the names.
    fn write(&self, template: &str, own: &[(&str, &str)]) -> SqlStr {
        let may_follow = |fp: &str, fpv: &str| MAY_FOLLOW.replace("{fp}", fp).replace("{fpv}", fpv);
        let follow_q = may_follow("q.fp", "q.fpv");
        let follow_excluded = may_follow("excluded.{fingerprint}", "excluded.{fingerprint_version}");
        let common = [
            ("{may_follow_q}", &*follow_q),
            ("{may_follow_excluded}", &*follow_excluded),
            ("{owned}", OWNED),
            ("{only_done_steps}", ONLY_DONE_STEPS),
            ("{has_done_steps}", HAS_DONE_STEPS),
            ("{has_steps}", HAS_STEPS),
            ("{in_doubt}", IN_DOUBT),
            ("{readable}", READABLE),
            ("{notify}", NOTIFY),
            ("{raw}", RAW),
            ("{shown}", SHOWN),
            ("{as_of}", "clock.now"),
            ("{nothing}", NOTHING),
            ("{clock}", CLOCK),
            ("{after_time}", AFTER_TIME),
            ("{clock_micros}", &NOW_MICROS.replace("{now}", "clock.now")),
            ("{verdict_micros}", &NOW_MICROS.replace("{now}", "v.now")),
            ("{channel}", self.channel),
        ];
        let text =
            own.iter().chain(&common).fold(template.to_owned(), |text, (from, to)| text.replace(from, to));
        sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(std::sync::Arc::<str>::from(
            self.names.render(&text),
        )))
    }

    /// `begun`: whether the record says from the beginning that an effect may have happened.
    fn reserve(&self, template: &str, many: bool, begun: &str) -> SqlStr {
        let columns = [
            ("key", "text"),
            ("operation", "text"),
            ("owner", "bytea"),
            ("fpv", "bigint"),
            ("fp", "bytea"),
            ("lease", "bigint"),
            ("unknown", "bigint"),
        ];
        // In the same order everywhere, so that two joined statements cannot wait for each other.
        let order = if many { " ORDER BY q.key" } else { "" };
        let as_of = if template == RESERVE { "i.idempotent_now" } else { "clock.now" };
        let shown = SHOWN.replace("{as_of}", as_of);
        let own =
            [("{q}", &*source(&columns, many)), ("{order}", order), ("{shown}", &shown), ("{begun}", begun)];
        self.write(template, &own)
    }

    fn change(&self, q: &str, condition: &str, deletable: &str, set: &str, recognised: &str) -> SqlStr {
        self.write(
            CHANGE,
            &[
                ("{q}", q),
                ("{condition}", condition),
                ("{deletable}", deletable),
                ("{set}", set),
                ("{recognised}", recognised),
            ],
        )
    }
}

/// The rows of `q`: one of parameters, or those of arrays. `columns` are the names and types.
fn source(columns: &[(&str, &str)], many: bool) -> String {
    let columns = columns.iter().zip(1..);
    if many {
        let arrays: Vec<_> = columns.clone().map(|((_, kind), n)| format!("${n}::{kind}[]")).collect();
        let names: Vec<_> = columns.map(|((name, _), _)| *name).collect();
        return format!("SELECT * FROM unnest({}) AS u ({})", arrays.join(", "), names.join(", "));
    }
    let values: Vec<_> = columns.map(|((name, kind), n)| format!("${n}::{kind} AS {name}")).collect();
    format!("SELECT {}", values.join(", "))
}

impl Statements {
    pub(super) fn new(names: &Names, channel: &str) -> Self {
        let writer = Writer { names, channel };
        let renew = |many| {
            let columns = [
                ("key", "text"),
                ("owner", "bytea"),
                ("lease", "bigint"),
                ("unknown", "bigint"),
                ("effects", "boolean"),
            ];
            writer.write(RENEW, &[("{q}", &source(&columns, many))])
        };
        let complete = |many| {
            let columns = [
                ("key", "text"),
                ("owner", "bytea"),
                ("state", "text"),
                ("result_version", "bigint"),
                ("result", "bytea"),
                ("keep", "bigint"),
            ];
            writer.write(COMPLETE, &[("{q}", &source(&columns, many))])
        };
        Self {
            try_new: writer.reserve(TRY, false, "false"),
            try_new_many: writer.reserve(TRY, true, "false"),
            reserve: writer.reserve(RESERVE, false, "false"),
            reserve_many: writer.reserve(RESERVE, true, "false"),
            fresh: writer.write(super::transaction::FRESH, &[]),
            follow: writer.reserve(RESERVE, false, "true"),
            renew: renew(false),
            renew_many: renew(true),
            complete: complete(false),
            complete_many: complete(true),
            put_step: writer.write(PUT_STEP, &[]),
            release_forget: writer.change(
                OWNER_ONLY,
                OWNED,
                "NOT {has_done_steps}",
                "{effects_begun} = false, {lease_until} = least(i.{lease_until}, clock.now), \
                 {expires_at} = least(i.{lease_until}, clock.now) + (i.{expires_at} - i.{lease_until}), {only_done_steps}",
                "false",
            ),
            release_unused: writer.change(
                OWNER_ONLY,
                OWNED,
                "(i.{attempt} <= 1 AND NOT {has_steps})",
                "{owner} = '\\x00000000000000000000000000000000'::bytea, {attempt} = greatest(i.{attempt} - 1, 0), \
                 {lease_until} = least(i.{lease_until}, clock.now), \
                 {expires_at} = least(i.{lease_until}, clock.now) + (i.{expires_at} - i.{lease_until})",
                "false",
            ),
            release_abandon: writer.change(
                OWNER_ONLY,
                OWNED,
                "false",
                "{lease_until} = least(i.{lease_until}, clock.now), \
                 {expires_at} = least(i.{lease_until}, clock.now) + (i.{expires_at} - i.{lease_until})",
                "false",
            ),
            resolve_done: writer.change(
                "SELECT $1::text AS key, $2::bytea AS owner, $3::bytea AS replacement, $4::text AS state, \
                 $5::bigint AS result_version, $6::bytea AS result, $7::bigint AS keep",
                RESOLVABLE,
                "false",
                "{owner} = q.replacement, {state} = q.state, {result_version} = q.result_version, \
                 {result} = q.result, {expires_at} = clock_timestamp() + q.keep * interval '1 microsecond', \
                 {lease_until} = NULL, {step_names} = NULL, {step_results} = NULL",
                "i.{owner} = q.replacement",
            ),
            resolve_not_done: writer.change(
                "SELECT $1::text AS key, $2::bytea AS owner, $3::bytea AS replacement",
                RESOLVABLE,
                "NOT {has_done_steps}",
                "{owner} = q.replacement, {state} = 'running', {attempt} = 0, {effects_begun} = false, \
                 {lease_until} = least(coalesce(i.{lease_until}, clock.now), clock.now), {result_version} = NULL, \
                 {result} = NULL, {only_done_steps}",
                "i.{owner} = q.replacement",
            ),
            forget: writer.change(OWNER_ONLY, FORGETTABLE, "true", "{watched} = i.{watched}", "false"),
            load: writer.write(LOAD, &[]),
            list: writer.write(LIST, &[("{of_operation}", " AND ($1::text IS NULL OR true)")]),
            list_operation: writer.write(LIST, &[("{of_operation}", " AND i.{operation} = $1::text")]),
            purge: writer.write(PURGE, &[]),
            blocks: writer.write(BLOCKS, &[]),
            watch: writer.write(WATCH, &[]),
        }
    }
}
