{VARIABLES}
{LOCK}
IF __found = 1 AND __settled IS NULL THEN {WALK} END IF;
IF __found = 0 THEN
    SET __said = 6;
ELSEIF __found = 2 THEN
    SELECT {RECORD} FROM {table} WHERE {key} = __key;
ELSEIF __holder = __replacement THEN
    SET __said = 2;
ELSEIF __holder <> __seen OR NOT (__state IN ('unknown', 'not_retained')
    OR (__state = 'running' AND __until <= __now)) THEN
    SELECT {RECORD} FROM {table} WHERE {key} = __key;
ELSEIF __settled IS NOT NULL THEN
    SET __said = 2;
    UPDATE {table} SET {owner} = __replacement, {state} = __settled, {result_version} = __result_version,
        {result} = __result, {lease_until} = NULL, {expires_at} = __now + __keep,
        {steps} = IF(__settled = 'unknown', {steps}, NULL) WHERE {key} = __key;
ELSEIF __done = '' THEN
    SET __said = 2;
    DELETE FROM {table} WHERE {key} = __key;
ELSE
    SET __said = 2;
    UPDATE {table} SET {owner} = __replacement, {state} = 'running', {attempt} = 0, {effects_begun} = 0,
        {lease_until} = LEAST(IFNULL(__until, __now), __now), {steps} = __done, {result_version} = NULL,
        {result} = NULL WHERE {key} = __key;
END IF;
{COMMIT};
{SAY}
