"""`python -m evidence`: compute every reference case, print the errors, and save the report."""

from evidence.accuracy.export import PATH, export_report
from evidence.accuracy.report import as_text, own_report

print(as_text(own_report()))
PATH.write_text(export_report(own_report()), encoding="utf-8")
