"""Alerts: where and when counts lie outside what was expected."""
