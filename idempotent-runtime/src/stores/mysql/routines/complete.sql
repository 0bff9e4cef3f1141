{VARIABLES}
{LOCK}
IF __found = 2 THEN
    SELECT {RECORD} FROM {table} WHERE {key} = __key;
ELSEIF __found = 0 OR __holder <> __owner THEN
    SET __said = 3;
ELSE
    SET __said = 2;
    IF __state = 'running' THEN
        UPDATE {table} SET {state} = __settled, {result_version} = __result_version, {result} = __result,
            {lease_until} = NULL, {expires_at} = __now + __keep,
            {steps} = IF(__settled = 'unknown', {steps}, NULL) WHERE {key} = __key;
    END IF;
END IF;
{COMMIT};
{SAY}
