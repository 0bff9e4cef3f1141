-- Tries what the other scripts do, on a key that is not there, and changes nothing. Answers with what failed.
local failed = {}
for _, try in ipairs({ { 'GET' }, { 'PTTL' }, { 'SETRANGE', 0, '' }, { 'SET', '', 'PX', '2', 'XX' } }) do
  local answer = redis.pcall(try[1], KEYS[1], unpack(try, 2))
  if type(answer) == 'table' and answer.err then failed[#failed + 1] = try[1] .. ': ' .. answer.err end
end
for _, try in ipairs({ { 'TIME' }, { 'PUBLISH', CHANNEL, '' } }) do
  local answer = redis.pcall(unpack(try))
  if type(answer) == 'table' and answer.err then failed[#failed + 1] = try[1] .. ': ' .. answer.err end
end
return failed
