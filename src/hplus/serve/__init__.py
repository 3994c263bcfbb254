"""The service of `hplus serve`: events in by HTTP, kept on disk, and rates out."""
