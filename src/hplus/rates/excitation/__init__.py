"""Events that cause events: a self-exciting rate, its trigger, and its simulated futures."""
