{VARIABLES}
{LOCK}
IF __found = 0 THEN
    SET __said = 6;
ELSEIF __found = 2 OR __holder <> __seen OR (__state = 'running' AND __until > __now) THEN
    SELECT {RECORD} FROM {table} WHERE {key} = __key;
ELSE
    SET __said = 2;
    DELETE FROM {table} WHERE {key} = __key;
END IF;
{COMMIT};
{SAY}
