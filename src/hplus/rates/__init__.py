"""Rates of events: everything between binned events and a rate with its uncertainty."""
