{VARIABLES}
{LOCK}
IF __found = 2 THEN
    SELECT {RECORD} FROM {table} WHERE {key} = __key;
ELSEIF __found = 0 OR __state <> 'running' OR __holder <> __owner THEN
    SET __said = 3;
ELSE
    SET __said = 2;
    UPDATE {table} SET {lease_until} = __now + __lease, {expires_at} = __now + __lease + __silence,
        {effects_begun} = {effects_begun} OR __mark WHERE {key} = __key;
END IF;
{COMMIT};
{SAY}
