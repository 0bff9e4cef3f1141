if not v then return false end
return show(0)
