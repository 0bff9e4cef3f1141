SELECT {RECORD} FROM {table} WHERE {key} = ?;
IF FOUND_ROWS() = 0 THEN
    INSERT IGNORE INTO {table} ({key}, {operation}, {version}, {state}, {owner}, {attempt}, {fence},
        {fingerprint_version}, {fingerprint}, {effects_begun}, {lease_until}, {created_at}, {expires_at})
    VALUES (?, ?, 1, 'running', ?, 1, __now, ?, ?, 0, __now + ?, __now, __now + ?)
    RETURNING 1, 1, {fence}, NULL;
END IF;
