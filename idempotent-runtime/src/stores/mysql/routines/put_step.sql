{VARIABLES}
{LOCK}
IF __found = 1 AND __state = 'running' AND __holder = __owner THEN {WALK} END IF;
IF __found = 2 THEN
    SELECT {RECORD} FROM {table} WHERE {key} = __key;
ELSEIF __found = 0 OR __state <> 'running' OR __holder <> __owner THEN
    SET __said = 3;
ELSEIF __at > 0 AND __at_done THEN
    UPDATE {table} SET {lease_until} = __now + __lease, {expires_at} = __now + __lease + __silence
        WHERE {key} = __key;
    SELECT 4, SUBSTRING(__steps, __at + 6 + LENGTH(__name), __at_size - 6 - LENGTH(__name));
ELSE
    SET __said = 2, __steps = IF(__at > 0,
        CONCAT(SUBSTRING(__steps, 1, __at - 1), __entry, SUBSTRING(__steps, __at + __at_size)),
        CONCAT(IFNULL(__steps, ''), __entry));
    -- What is longer than max_allowed_packet comes out as null.
    IF __steps IS NULL THEN
        SIGNAL SQLSTATE '22001' SET MESSAGE_TEXT = 'the steps of a record are longer than max_allowed_packet';
    END IF;
    UPDATE {table} SET {steps} = __steps, {lease_until} = __now + __lease,
        {expires_at} = __now + __lease + __silence WHERE {key} = __key;
END IF;
{COMMIT};
{SAY}
