"""Tables in files, in chunks: one reader for batch and stream, one meaning of a cell."""
