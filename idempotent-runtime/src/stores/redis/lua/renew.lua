-- ARGV: owner, lease, unknown_ttl, '1' to mark effects
if not v or state ~= 'r' or owner ~= ARGV[1] then return 0 end
lease, unknown = now + ARGV[2], tonumber(ARGV[3])
if ARGV[4] == '1' then effects = '1' end
run()
if lease <= now then tell() end
return 1
