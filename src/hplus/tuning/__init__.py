"""Scales, penalties and priors learned from data."""
