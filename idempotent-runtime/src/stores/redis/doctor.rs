//! What is wrong with a server: asked of the server itself, as far as it lets us.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo};
use redis::{Cmd, RedisResult, Value, cmd, from_redis_value};

use super::link::Link;
use super::{RedisStore, fault};
use crate::doctor::Finding;
use crate::store::StoreResult;

/// Clocks further apart than this make what a person reads in logs and lists hard to compare.
const SKEW: Duration = Duration::from_secs(5);

/// The oldest version that the store is meant for.
const OLDEST: (u32, u32) = (6, 2);

impl RedisStore {
    pub(super) async fn examine_server(&self) -> StoreResult<Vec<Finding>> {
        let mut found = Vec::new();
        self.try_scripts(&mut found).await?;
        self.look_at_info(&mut found).await?;
        self.look_at_settings(&mut found).await?;
        self.compare_clocks(&mut found).await?;
        if self.link().is_cluster() {
            self.look_at_cluster(&mut found).await?;
        }
        Ok(found)
    }

    /// Whether the scripts may do what they do.
    async fn try_scripts(&self, found: &mut Vec<Finding>) -> StoreResult<()> {
        let key = format!("{}probe", self.inner.prefix);
        let answer = self.inner.scripts.probe.run(self.link(), key.as_bytes(), |_| ()).await;
        let failed: Vec<String> = match answer {
            Ok(failed) => from_redis_value(failed).unwrap_or_default(),
            Err(error) if is_forbidden(&error) => vec![format!("EVALSHA, EVAL: {error}")],
            Err(error) => return Err(fault::error(error, false)),
        };
        for failure in failed {
            let finding = if failure.contains("READONLY") {
                Finding::breaks(
                    "this server is a read-only replica",
                    "name the primary, or connect through Sentinel or to the cluster",
                )
            } else if failure.contains("OOM") {
                Finding::breaks(
                    "the server has used up its memory, so that no new call can run",
                    "raise maxmemory, or remove what is not needed",
                )
            } else if failure.starts_with("PUBLISH") {
                Finding::weakens(
                    format!("changes cannot be published ({failure}), so that waiting callers poll"),
                    format!(
                        "let the user publish and subscribe to `{}changes` (ACL `&…`)",
                        self.inner.prefix
                    ),
                )
            } else if failure.contains("NOREPLICAS") {
                Finding::breaks(
                    "fewer replicas than `min-replicas-to-write` are connected, so that nothing can be written",
                    "bring the replicas back",
                )
            } else {
                Finding::breaks(
                    format!("the store may not do what it has to do: {failure}"),
                    format!(
                        "allow the user GET, GETRANGE, SET, SETRANGE, PTTL, PEXPIRETIME, TIME, EVAL, EVALSHA, \
                         PUBLISH and SUBSCRIBE, on keys that begin with `{}`",
                        self.inner.prefix
                    ),
                )
            };
            push(found, finding);
        }
        Ok(())
    }

    async fn look_at_info(&self, found: &mut Vec<Finding>) -> StoreResult<()> {
        let Some(infos) = self.ask_each(cmd("INFO"), "INFO", found).await? else { return Ok(()) };
        for info in infos {
            let text: String = from_redis_value(info).unwrap_or_default();
            let info: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once(':')).collect();
            let of = |name| info.get(name).copied().unwrap_or_default();
            let says = |name, value| of(name) == value;
            if says("role", "slave") {
                push(
                    found,
                    Finding::breaks(
                        "this server is a replica: it may be behind, and its records are not the ones that count",
                        "name the primary, or connect through Sentinel or to the cluster",
                    ),
                );
            }
            if says("loading", "1") {
                push(found, Finding::weakens("the server is still loading its data", "wait until it has"));
            }
            if says("aof_last_write_status", "err") || says("rdb_last_bgsave_status", "err") {
                push(
                    found,
                    Finding::breaks(
                        "the server could not write its data to the disk the last time",
                        "look at its log and at the space on its disk",
                    ),
                );
            }
            if !self.link().is_cluster() && says("cluster_enabled", "1") {
                push(
                    found,
                    Finding::breaks(
                        "this server is one node of a cluster, which refuses the keys of the other nodes",
                        "use a URL that begins with `redis-cluster://`, or a cluster connection",
                    ),
                );
            }
            let version = of("redis_version");
            if older(version) {
                push(
                    found,
                    Finding::weakens(
                        format!("Redis {version} is older than 6.2, for which this store has not been made"),
                        "use a newer server",
                    ),
                );
            }
        }
        Ok(())
    }

    async fn look_at_settings(&self, found: &mut Vec<Finding>) -> StoreResult<()> {
        let mut get = cmd("CONFIG");
        get.arg("GET").arg("*");
        let Some(answers) = self.ask_each(get, "CONFIG GET", found).await? else { return Ok(()) };
        for answer in answers {
            let settings: HashMap<String, String> = from_redis_value(answer).unwrap_or_default();
            let of = |name| settings.get(name).map_or("", String::as_str);
            let policy = of("maxmemory-policy");
            if policy != "noeviction" && !policy.is_empty() {
                push(
                    found,
                    match of("maxmemory") {
                        "0" => Finding::weakens(
                            format!(
                                "`maxmemory-policy` is `{policy}`: should `maxmemory` ever be set, records are dropped"
                            ),
                            "set `maxmemory-policy noeviction`",
                        ),
                        _ => Finding::breaks(
                            format!(
                                "`maxmemory-policy` is `{policy}`: when memory is short the server drops records, and \
                                 their calls run again"
                            ),
                            "set `maxmemory-policy noeviction`, or give the store a server of its own",
                        ),
                    },
                );
            }
            let (append, sync) = (of("appendonly"), of("appendfsync"));
            if append == "no" && of("save").is_empty() {
                push(
                    found,
                    Finding::breaks(
                        "nothing is kept on the disk (`appendonly no`, `save \"\"`): after a restart every call runs again",
                        "set `appendonly yes` and `appendfsync always`",
                    ),
                );
            } else if append == "no" {
                push(
                    found,
                    Finding::weakens(
                        "only snapshots are kept on the disk: a restart forgets what came after the last one",
                        "set `appendonly yes` and `appendfsync always`",
                    ),
                );
            } else if append == "yes" && sync != "always" {
                push(
                    found,
                    Finding::weakens(
                        format!(
                            "`appendfsync {sync}`: a crash of the machine forgets the last acknowledged writes"
                        ),
                        "set `appendfsync always` where a second effect is worse than a slower call",
                    ),
                );
            }
            let replicas = of("min-replicas-to-write");
            if self
                .inner
                .replicas
                .is_some_and(|wanted| replicas.parse().is_ok_and(|least: usize| least < wanted.count))
            {
                push(
                    found,
                    Finding::weakens(
                        format!(
                            "`min-replicas-to-write {replicas}`: a primary cut off from its replicas goes on \
                             acknowledging results that a failover forgets"
                        ),
                        "set it to the number that the store waits for",
                    ),
                );
            }
        }
        Ok(())
    }

    async fn compare_clocks(&self, found: &mut Vec<Finding>) -> StoreResult<()> {
        let before = SystemTime::now();
        let Some(times) = self.ask_each(cmd("TIME"), "TIME", found).await? else { return Ok(()) };
        let after = SystemTime::now();
        for time in times {
            let (seconds, micros): (u64, u64) = from_redis_value(time).unwrap_or_default();
            let server = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros);
            let behind = before.duration_since(server).unwrap_or_default();
            let ahead = server.duration_since(after).unwrap_or_default();
            if behind.max(ahead) > SKEW {
                push(
                    found,
                    Finding::weakens(
                        format!(
                            "the server's clock and this machine's are {:?} apart; leases go by the server's",
                            behind.max(ahead)
                        ),
                        "synchronize the clocks",
                    ),
                );
            }
        }
        Ok(())
    }

    async fn look_at_cluster(&self, found: &mut Vec<Finding>) -> StoreResult<()> {
        let answer = self.link().ask(cmd("CLUSTER").arg("INFO")).await;
        let info: String = match answer {
            Ok(info) => from_redis_value(info).unwrap_or_default(),
            Err(error) if is_forbidden(&error) => {
                found.push(unchecked("CLUSTER INFO"));
                return Ok(());
            }
            Err(error) => return Err(fault::error(error, false)),
        };
        if !info.lines().any(|line| line.trim() == "cluster_state:ok") {
            found.push(Finding::breaks(
                "the cluster is not in order: some keys belong to no node that works",
                "look at `redis-cli --cluster check`",
            ));
        }
        Ok(())
    }

    /// Asks every primary. `None`: it is forbidden, which is a finding.
    async fn ask_each(
        &self,
        command: Cmd,
        name: &str,
        found: &mut Vec<Finding>,
    ) -> StoreResult<Option<Vec<Value>>> {
        match self.ask_primaries(command).await {
            Ok(values) => Ok(Some(values)),
            Err(error) if is_forbidden(&error) => {
                found.push(unchecked(name));
                Ok(None)
            }
            Err(error) => Err(fault::error(error, false)),
        }
    }

    async fn ask_primaries(&self, command: Cmd) -> RedisResult<Vec<Value>> {
        let Link::Cluster(cluster) = self.link() else {
            return Ok(vec![self.link().ask(&command).await?]);
        };
        let every = (MultipleNodeRoutingInfo::AllMasters, None::<ResponsePolicy>);
        let answer = cluster.clone().route_command(command, RoutingInfo::MultiNode(every)).await?;
        Ok(match answer.extract_error()? {
            Value::Map(nodes) => nodes.into_iter().map(|(_, value)| value).collect(),
            Value::Array(nodes) => nodes
                .into_iter()
                .filter_map(|node| match node {
                    Value::Array(pair) => pair.into_iter().nth(1),
                    _ => None,
                })
                .collect(),
            other => vec![other],
        })
    }
}

/// Adds what several nodes have in common once.
fn push(found: &mut Vec<Finding>, finding: Finding) {
    if !found.contains(&finding) {
        found.push(finding);
    }
}

/// Managed services forbid some commands, and give some of them other names.
fn unchecked(name: &str) -> Finding {
    let (what, how) = match name {
        "CONFIG GET" => (
            "whether records may be evicted, and what a restart keeps",
            "check `maxmemory-policy noeviction` and the persistence settings where the server is set up",
        ),
        "INFO" => ("whether this is the primary, and its version", "check it where the server is set up"),
        "TIME" => ("the server's clock", "allow the user TIME"),
        _ => ("whether all slots are served", "check it where the server is set up"),
    };
    Finding::weakens(format!("`{name}` is forbidden, so {what} could not be checked"), how)
}

fn is_forbidden(error: &redis::RedisError) -> bool {
    matches!(error.code(), Some("NOPERM")) || error.to_string().to_lowercase().contains("unknown command")
}

/// Whether a version such as `6.0.16` is older than the store is meant for.
fn older(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version < OLDEST)
}
