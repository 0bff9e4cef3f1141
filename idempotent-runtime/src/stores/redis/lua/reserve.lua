-- ARGV: owner, fingerprint, lease, unknown_ttl, policy, max_attempts, operation
local before = fence
local function grant()
  lease, unknown = now + ARGV[3], tonumber(ARGV[4])
  v, stamped = run(), true
  return show(1)
end

if not v then
  state, effects, watched, owner, print, attempt, rest = 'r', '0', '0', ARGV[1], ARGV[2], 1, ''
  fence, created, operation = math.max(before + 1, now), now, string.format('%03d', #ARGV[7]) .. ARGV[7]
  return grant()
end
if state ~= 'r' then return show(0) end
if owner == ARGV[1] then
  attempt = math.max(attempt, 1)
  return grant()
end
if lease > now or print ~= ARGV[2] then return show(0) end
local doubt, any = effects == '1', rest ~= ''
steps(function(done) if not done then doubt = true end end)
if ARGV[5] ~= 'a' and (doubt or (ARGV[5] == 's' and not any)) then return show(0) end
if attempt >= tonumber(ARGV[6]) then
  owner, state, unknown = string.rep('\0', 16), 'u', tonumber(ARGV[4])
  tell()
  watched = '0'
  v, stamped = put(unknown), true
  return show(0)
end
owner, attempt, fence = ARGV[1], attempt + 1, math.max(fence + 1, now)
return grant()
