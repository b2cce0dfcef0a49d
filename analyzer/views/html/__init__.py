"""Pages for a browser: one self-contained file each, that loads nothing and runs nothing but its own script."""

from analyzer.views.html.audit import audit_page
from analyzer.views.html.report import report_page

__all__ = ["audit_page", "report_page"]
