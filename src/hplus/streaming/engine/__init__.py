"""The compiled engine of every stream: loss × link × budget on plain arrays."""
