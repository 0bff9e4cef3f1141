DECLARE __now BIGINT;
DECLARE __old VARBINARY(255);
DECLARE __end, __count INT DEFAULT 0;
DECLARE __expired CURSOR FOR SELECT {key} FROM {table} WHERE {expires_at} <= __now AND {version} = 1
    AND {state} IN ('running', 'completed', 'failed', 'not_retained', 'unknown')
    ORDER BY {expires_at} LIMIT __limit;
DECLARE CONTINUE HANDLER FOR NOT FOUND SET __end = 1;
DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
{BEGIN};
SET __now = {NOW};
-- Looked for without locks, and each deleted by its key, as the calls lock them.
OPEN __expired;
FETCH __expired INTO __old;
WHILE NOT __end DO
    DELETE FROM {table} WHERE {key} = __old AND {expires_at} <= __now;
    SET __count = __count + ROW_COUNT();
    FETCH __expired INTO __old;
END WHILE;
CLOSE __expired;
{COMMIT};
SELECT 5, __count;
