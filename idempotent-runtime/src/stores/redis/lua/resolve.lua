-- ARGV: seen, replacement, '' for not done, else the state; keep in milliseconds; version and bytes of the result
if not v then return false end
if owner == ARGV[2] then return 1 end
local waits = state == 'u' or state == 'n' or (state == 'r' and lease <= now)
if not waits or owner ~= ARGV[1] then return show(0) end
owner = ARGV[2]
if ARGV[3] ~= '' then
  tell()
  state, watched, rest = ARGV[3], '0', ARGV[5]
  put(ARGV[4] * 1000)
  return 1
end
if state == 'n' then rest = '' end
attempt = 0
reopen()
if state == 't' then return 1 end
lease = math.min(lease, now)
keep()
return 1
