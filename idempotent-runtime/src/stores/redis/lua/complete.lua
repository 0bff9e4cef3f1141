-- ARGV: owner, state, keep in milliseconds, version and bytes of the result. By itself, because it is half of every
-- first call.
local key = KEYS[1]
local v = redis.call('GET', key)
if not v then return 0 end
local sub = string.sub
local op = tonumber(sub(v, 128, 130))
if sub(v, 1, 1) ~= '1' or not op then return -2 end
local state = sub(v, 2, 2)
if sub(v, 5, 20) ~= ARGV[1] or state == 't' then return 0 end
if state ~= 'r' then return 1 end
local times, rest = sub(v, 64, 127), ARGV[4]
if sub(times, 1, 16) == '0000000000000000' then
  local span = tonumber(sub(v, 96, 111)) + tonumber(sub(v, 112, 127))
  local expiry = redis.pcall('PEXPIRETIME', key)
  local left = math.max(math.ceil(span / 1000), 2)
  -- Not allowed; or somebody has made the key one that never expires, and then now is the best that can be said.
  if type(expiry) ~= 'number' or expiry < 0 then
    local time, ttl = redis.call('TIME'), redis.call('PTTL', key)
    expiry = time[1] * 1000 + math.floor(time[2] / 1000) + (ttl < 0 and left or ttl)
  end
  local granted = (expiry - left) * 1000
  times = string.format('%016d%016d', granted, granted) .. sub(v, 96, 127)
end
if ARGV[2] == 'u' then rest = sub(v, 131 + op) end
redis.call('SET', key, '1' .. ARGV[2] .. sub(v, 3, 3) .. '0' .. sub(v, 5, 63) .. times .. sub(v, 128, 130 + op) .. rest,
  'PX', ARGV[3])
if sub(v, 4, 4) == '1' then redis.pcall('PUBLISH', CHANNEL, key) end
return 1
