"""Studies: from a file of events or quantities to a model that can be saved, queried and shown."""
