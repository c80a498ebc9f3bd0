"""Records, bins, queries, engines, sources of records, statistics."""
