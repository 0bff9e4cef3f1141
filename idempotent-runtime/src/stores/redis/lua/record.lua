-- What stands in front of every script: the record under KEYS[1], taken apart. Record in, locals out.
--
--   bytes      what
--   1          format, '1'
--   2          state: r running, c completed, f failed, n not retained, u unknown, t nothing but the last fence
--   3, 4       '1' when effects have begun; '1' when somebody waits for a change
--   5-20       owner
--   21-53      fingerprint: version, digest
--   54-63      attempt
--   64-79      fence; 0: not stamped yet, see below
--   80-95      created, microseconds
--   96-111     end of the lease, microseconds
--   112-127    how long a silent attempt is remembered, microseconds
--   128-130    length of the operation, then the operation, then what the state needs: of c and f the version of
--              the result (10) and its bytes; of r and u the steps
--
-- A step is 'b' or 'd', the length of its name (5), the name, the length of its result (10), the result.
-- When a record expires is what the server's own expiry of the key says.
--
-- A first attempt may be written by a plain SET, which cannot ask the clock. Its fence is 0 and the end of its lease is a
-- span. When it was granted follows from the expiry, which nobody moves without stamping the record first.
local call, sub = redis.call, string.sub
local key = KEYS[1]
local v = call('GET', key)
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local state, effects, watched, owner, print, attempt, fence, created, lease, unknown, operation, rest
local stamped = true
fence = 0
if v then
  local n = tonumber(sub(v, 128, 130))
  attempt, fence, created = tonumber(sub(v, 54, 63)), tonumber(sub(v, 64, 79)), tonumber(sub(v, 80, 95))
  lease, unknown = tonumber(sub(v, 96, 111)), tonumber(sub(v, 112, 127))
  if sub(v, 1, 1) ~= '1' or not (n and attempt and fence and created and lease and unknown) or #v < 130 + n then
    return -2
  end
  state, effects, watched, owner, print = sub(v, 2, 2), sub(v, 3, 3), sub(v, 4, 4), sub(v, 5, 20), sub(v, 21, 53)
  operation, rest = sub(v, 128, 130 + n), sub(v, 131 + n)
  if fence == 0 then
    stamped = false
    local expiry = redis.pcall('PEXPIRETIME', key)
    -- Where it is not allowed, the same but for a millisecond.
    if type(expiry) ~= 'number' then expiry = math.floor(now / 1000) + call('PTTL', key) end
    if expiry < now / 1000 then return -2 end
    created = (expiry - math.max(math.ceil((lease + unknown) / 1000), 2)) * 1000
    fence, lease = created, created + lease
  end
  if state == 't' then v = false end
end

-- The record in bytes.
local function text()
  return '1' .. state .. effects .. watched .. owner .. print
    .. string.format('%010d%016d%016d%016d%016d', attempt, fence, created, lease, unknown) .. operation .. rest
end

-- Writes the record, to expire in so many microseconds.
local function put(span)
  local bytes = text()
  call('SET', key, bytes, 'PX', math.max(math.ceil(span / 1000), 2))
  return bytes
end

-- Writes the running record, to expire when a silent attempt is forgotten.
local function run()
  return put(math.max(lease - now, 0) + unknown)
end

-- Writes the record, to expire when it would have.
local function keep()
  local left = call('PTTL', key)
  return put(left < 0 and math.max(unknown, 1000) or left * 1000)
end

-- Deletes the record, and keeps its fence until the clock is past it, so that the next one is greater.
local function drop()
  state, effects, watched, attempt, lease, unknown, operation, rest = 't', '0', '0', 0, 0, 0, '000', ''
  put(math.max(fence - now, 0) + 2000)
end

-- What a caller is shown: the clock, when the record expires, the record.
local function show(tag)
  return { tag, now, call('PTTL', key), stamped and v or text() }
end

-- Tells those who wait. It must not fail what has been written.
local function tell()
  if watched == '1' then redis.pcall('PUBLISH', CHANNEL, key) end
end

-- Takes the steps apart: calls f(done, name, result, from, to) for each until it returns something.
local function steps(f)
  local at = 1
  while at <= #rest do
    local n = tonumber(sub(rest, at + 1, at + 5))
    local m = tonumber(sub(rest, at + 6 + n, at + 15 + n))
    local to = at + 15 + n + m
    local found = f(sub(rest, at, at) == 'd', sub(rest, at + 6, at + 5 + n), sub(rest, at + 16 + n, to), at, to)
    if found then return found end
    at = to + 1
  end
end

-- Makes room for the next call: keeps the finished steps and nothing else, or deletes the record if there are none.
local function reopen()
  local kept = {}
  steps(function(done, _, _, from, to)
    if done then kept[#kept + 1] = sub(rest, from, to) end
  end)
  tell()
  if #kept == 0 then return drop() end
  state, effects, watched, rest = 'r', '0', '0', table.concat(kept)
end
