"""Rates by random dyadic trees: structure of every size, in closed form."""
