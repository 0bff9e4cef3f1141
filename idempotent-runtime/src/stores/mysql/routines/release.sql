{VARIABLES}
{LOCK}
IF __found = 1 AND __state = 'running' AND __holder = __owner AND __how = 0 THEN {WALK} END IF;
IF __found = 2 THEN
    SELECT {RECORD} FROM {table} WHERE {key} = __key;
ELSEIF __found = 0 THEN
    SET __said = 2;
ELSEIF __state <> 'running' OR __holder <> __owner THEN
    SET __said = 3;
ELSE
    SET __said = 2;
    IF (__how = 0 AND __done = '') OR (__how = 1 AND __attempt <= 1 AND __steps IS NULL) THEN
        DELETE FROM {table} WHERE {key} = __key;
    ELSEIF __how = 0 THEN
        UPDATE {table} SET {steps} = __done, {effects_begun} = 0, {lease_until} = LEAST(__until, __now),
            {expires_at} = LEAST(__until, __now) + (__expires - __until) WHERE {key} = __key;
    ELSEIF __how = 1 THEN
        UPDATE {table} SET {owner} = REPEAT(CHAR(0), 16), {attempt} = GREATEST(__attempt, 1) - 1,
            {lease_until} = LEAST(__until, __now), {expires_at} = LEAST(__until, __now) + (__expires - __until)
            WHERE {key} = __key;
    ELSEIF __until > __now THEN
        UPDATE {table} SET {lease_until} = __now, {expires_at} = __now + (__expires - __until)
            WHERE {key} = __key;
    END IF;
END IF;
{COMMIT};
{SAY}
