"""The report: one HTML page without a script, a network or any other file."""

from uncork.experiment.report.page import page

__all__ = ["page"]
