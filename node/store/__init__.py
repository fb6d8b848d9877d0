"""The node's durable state: two encrypted SQLite databases and one module per kind of row. The only database driver imports."""
