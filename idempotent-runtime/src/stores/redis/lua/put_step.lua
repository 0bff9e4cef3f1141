-- ARGV: owner, lease, unknown_ttl, name, 'b' | 'd', result. A finished step's result is the answer.
if not v or state ~= 'r' or owner ~= ARGV[1] then return 0 end
lease, unknown = now + ARGV[2], tonumber(ARGV[3])
local step = ARGV[5] .. string.format('%05d', #ARGV[4]) .. ARGV[4] .. string.format('%010d', #ARGV[6]) .. ARGV[6]
local finished, seen
seen = steps(function(done, name, result, from, to)
  if name ~= ARGV[4] then return nil end
  if done then
    finished = result
  else
    rest = sub(rest, 1, from - 1) .. step .. sub(rest, to + 1)
  end
  return true
end)
if not seen then rest = rest .. step end
run()
return finished or 1
