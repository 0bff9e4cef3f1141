-- ARGV: owner, 'forget' | 'unused' | 'abandon'
if not v then return 1 end
if state ~= 'r' or owner ~= ARGV[1] then return 0 end
if ARGV[2] == 'forget' then
  reopen()
  if state == 't' then return 1 end
  if lease <= now then
    keep()
  else
    lease = now
    put(unknown)
  end
  return 1
end
if ARGV[2] == 'unused' and attempt <= 1 and rest == '' then
  tell()
  drop()
  return 1
end
if ARGV[2] == 'abandon' and lease <= now then return 1 end
if ARGV[2] == 'unused' then
  owner, attempt = string.rep('\0', 16), math.max(attempt - 1, 0)
end
if lease <= now then
  keep()
else
  lease = now
  put(unknown)
end
tell()
return 1
