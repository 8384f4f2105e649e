"""Where every durable fact lives: one transactional store, and the blobs that its rows name."""
