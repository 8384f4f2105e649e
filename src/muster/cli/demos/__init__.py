"""The scenarios, start to finish, narrated and verified."""
