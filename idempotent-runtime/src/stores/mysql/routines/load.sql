DECLARE __now BIGINT;
{END};
SET __now = {NOW};
SELECT {RECORD} FROM {table} WHERE {key} = __key AND {expires_at} > __now;
{END};
