"""Which messages can be received now, and in which order: `:count` of `:queue` at `:now`."""

CLAIMABLE = (
    "SELECT * FROM sqs_messages WHERE queue = :queue AND visible_at <= :now ORDER BY visible_at, sequence LIMIT :count"
)
# In a FIFO queue, a message with an earlier one of its group in flight or delayed stays where it is. The hidden ones are
# few, so they are found first, and once.
CLAIMABLE_IN_ORDER = (
    "WITH hidden AS (SELECT group_id, MIN(sequence) AS earliest FROM sqs_messages"
    "  WHERE queue = :queue AND visible_at > :now GROUP BY group_id)"
    " SELECT m.* FROM sqs_messages AS m LEFT JOIN hidden ON hidden.group_id = m.group_id"
    " WHERE m.queue = :queue AND m.visible_at <= :now AND (hidden.earliest IS NULL OR m.sequence < hidden.earliest)"
    " ORDER BY m.sequence LIMIT :count"
)
