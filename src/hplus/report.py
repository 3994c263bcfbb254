"""Reports: a fitted study as one HTML page that needs no other file."""

from hplus.display.page import report_html, write_report

__all__ = ["report_html", "write_report"]
