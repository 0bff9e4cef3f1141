DECLARE __shown, __dup, __allowed INT DEFAULT 0;
DECLARE __later BIGINT;
{VARIABLES}
-- What is settled, or alive under another token, is shown without a lock and without a transaction; without an older
-- snapshot too, where nothing commits by itself.
{END};
SET __now = {NOW};
SELECT {RECORD} FROM {table} WHERE {key} = __key AND {expires_at} > __now AND ({state} <> 'running'
    OR ({owner} <> __owner AND ({lease_until} > __now
        OR {fingerprint} <> __print OR {fingerprint_version} <> __print_version
        OR (__take = 0 AND {steps} IS NULL) OR (__take < 2 AND {effects_begun}))));
SET __shown = FOUND_ROWS();
{END};
IF __shown = 0 THEN
    {BEGIN};
    BEGIN
        DECLARE CONTINUE HANDLER FOR 1062 SET __dup = 1;
        SET __now = {NOW};
        INSERT INTO {table} ({key}, {operation}, {version}, {state}, {owner}, {attempt}, {fence},
            {fingerprint_version}, {fingerprint}, {effects_begun}, {lease_until}, {created_at}, {expires_at})
        VALUES (__key, __operation, 1, 'running', __owner, 1, __now,
            __print_version, __print, 0, __now + __lease, __now, __now + __lease + __silence);
    END;
    IF __dup = 0 THEN
        -- Having waited for somebody's lock, the clock is read again: who let go of it may have had a later fence.
        SET __later = {NOW};
        IF __later - __now > 100 THEN
            UPDATE {table} SET {fence} = __later, {lease_until} = __later + __lease, {created_at} = __later,
                {expires_at} = __later + __lease + __silence WHERE {key} = __key;
            SET __now = __later;
        END IF;
        {COMMIT};
        SELECT 1, 1, __now, NULL;
    ELSE
        ROLLBACK;
        {LOCK}
        IF __found = 1 AND __steps IS NOT NULL THEN {WALK} END IF;
        SET __allowed = CASE __take WHEN 2 THEN 1 WHEN 1 THEN NOT __effects AND __begun = 0
            ELSE NOT __effects AND __begun = 0 AND __steps IS NOT NULL END;
        IF __version IS NULL THEN
            SET __said = 7;
        ELSEIF __found = 2 THEN
            SELECT {RECORD} FROM {table} WHERE {key} = __key;
        ELSEIF __found = 0 THEN
            SET __said = 1, __attempt = 1, __fence = GREATEST(__fence + 1, __now), __steps = NULL;
            UPDATE {table} SET {operation} = __operation, {state} = 'running', {owner} = __owner, {attempt} = 1,
                {fence} = __fence, {fingerprint_version} = __print_version, {fingerprint} = __print,
                {effects_begun} = 0, {lease_until} = __now + __lease, {created_at} = __now,
                {expires_at} = __now + __lease + __silence, {result_version} = NULL, {result} = NULL,
                {steps} = NULL WHERE {key} = __key;
        ELSEIF __state = 'running' AND __holder = __owner THEN
            SET __said = 1, __attempt = GREATEST(__attempt, 1);
            UPDATE {table} SET {attempt} = __attempt, {lease_until} = __now + __lease,
                {expires_at} = __now + __lease + __silence WHERE {key} = __key;
        ELSEIF __state <> 'running' OR __until > __now OR __held_print <> __print
            OR __held_print_version <> __print_version OR NOT __allowed THEN
            SELECT {RECORD} FROM {table} WHERE {key} = __key;
        ELSEIF __attempt >= __most THEN
            UPDATE {table} SET {owner} = REPEAT(CHAR(0), 16), {state} = 'unknown', {lease_until} = NULL,
                {expires_at} = __now + __silence WHERE {key} = __key;
            SELECT {RECORD} FROM {table} WHERE {key} = __key;
        ELSE
            SET __said = 1, __attempt = __attempt + 1, __fence = GREATEST(__fence + 1, __now);
            UPDATE {table} SET {owner} = __owner, {attempt} = __attempt, {fence} = __fence,
                {lease_until} = __now + __lease, {expires_at} = __now + __lease + __silence WHERE {key} = __key;
        END IF;
        {COMMIT};
        IF __said = 1 THEN SELECT 1, __attempt, __fence, __steps; END IF;
        IF __said = 7 THEN SELECT 7; END IF;
    END IF;
END IF;
