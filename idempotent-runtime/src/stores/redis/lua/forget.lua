-- ARGV: seen
if not v then return false end
if owner ~= ARGV[1] or (state == 'r' and lease > now) then return show(0) end
tell()
drop()
return 1
