"""Studies: from a file of events or quantities to a model that can be kept, asked and shown."""
