-- Marks the record, so that its next change is told.
if v and state == 'r' and watched == '0' then call('SETRANGE', key, 3, '1') end
return 1
